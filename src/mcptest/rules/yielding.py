"""Which rule yields to which: one fault is one finding, told by the rule that says most about it.

A row is read "the first yields to the second where both failed over the same thing". What is the
same is said too: the same message, the same request without an answer, an id that came back
changed, an answer of the same kind. A rule that yields is inconclusive, and names the other.
Where a message has a wrong shape, `rules/shape_overlap.py` says the same for parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from mcptest.model.compliance import RuleResult
from mcptest.model.verdict import Outcome, Verdict
from mcptest.wire.envelope import decode

_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)')


class Shown(msgspec.Struct, frozen=True):
    """One proof of a failing rule, as it is shown."""

    sent: str = ""
    received: str = ""
    actual: str = ""
    """What the rule saw in place of what it expects, where it says so."""


Proof: TypeAlias = Sequence[Shown]
Same: TypeAlias = Callable[[Proof, Proof], bool]
ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Yielding:
    rule: str
    """Its id, or `*` for every rule."""
    to: str
    same: Same


# -- what is the same ----------------------------------------------------------------------


def same_message(one: Proof, other: Proof) -> bool:
    """Every message that the first is about is one that the second tells of."""
    told = {shown.received for shown in other if shown.received}
    return bool(one) and all(shown.received in told for shown in one)


def same_silence(one: Proof, other: Proof) -> bool:
    """Nothing came to a request, which is all that the first has to say."""
    unanswered = {shown.sent for shown in other if not shown.received}
    return bool(one) and all(not shown.received and shown.sent in unanswered for shown in one)


def same_id(one: Proof, other: Proof) -> bool:
    """The first is about ids that the second saw come back as another type of number or text."""
    known = {_plain_id(text) for shown in other for text in (shown.sent, shown.received)}
    about = {_plain_id(shown.received or shown.sent) for shown in one}
    return bool(about) and about <= known - {""}


def only_noise(one: Proof, other: Proof) -> bool:
    """The server lives, so all that was wrong are lines that the second tells of."""
    return bool(one) and all('"alive":true' in shown.actual for shown in one)


def same_answer(one: Proof, other: Proof) -> bool:
    """Both got the same kind of answer: a result, or an error with the same code."""
    known = {_kind_of(shown.received) for shown in other}
    return bool(one) and all(_kind_of(shown.received) in known for shown in one)


def _plain_id(text: str) -> str:
    """An id without its JSON type and case: 7, 7.0 and "7" are the same one here."""
    found = _ID.search(text)
    if found is None:
        return ""
    plain = found.group(1).strip('"')
    try:
        number = float(plain)
    except ValueError:
        return plain.casefold()
    return str(int(number)) if number.is_integer() else plain


def _kind_of(received: str) -> Any:
    start = received.find("{")
    message = decode(received[start:].encode("utf-8", "replace")) if start >= 0 else None
    if message is None:
        return received[:20]
    error = message.error
    return ("error", error.get("code")) if isinstance(error, dict) else message.kind.value


# -- the table -----------------------------------------------------------------------------

YIELDINGS: Final[tuple[Yielding, ...]] = (
    Yielding("MSG-001", "STDIO-001", same_message),
    Yielding("MSG-002", "STDIO-001", same_message),
    Yielding("PROTO-008", "STDIO-001", only_noise),
    Yielding("MSG-009", "MSG-006", same_id),
    Yielding("MSG-006", "JSONRPC-004", same_id),
    Yielding("MSG-009", "JSONRPC-004", same_id),
    Yielding("INV-007", "JSONRPC-001", same_answer),
    *(
        Yielding(name, "JSONRPC-001", same_answer)
        for name in ("PROTO-021", "LOG-106", "SUBS-107", "TASK-101", "TASK-102", "COMPL-002")
    ),
    *(Yielding(f"JSONRPC-0{number}", "JSONRPC-001", same_answer) for number in ("08", "09", "10")),
    *(Yielding("INV-004", name, same_answer) for name in ("TOOLS-001", "RES-101", "PROMPT-101")),
    Yielding("PROTO-016", "PROTO-013", same_message),
    Yielding("PROTO-011", "PROTO-013", same_answer),
    Yielding("COMPL-002", "COMPL-001", same_message),
    Yielding("TOOLS-008", "TOOLS-007", same_message),
    Yielding("RES-102", "RES-103", same_message),
    Yielding(ANY, "MSG-009", same_silence),
)


def yielding_to(proofs: Mapping[str, Proof]) -> dict[str, str]:
    """Of the rules that failed, with the proof of each: those that yield, and to which one."""
    found: dict[str, str] = {}
    for row in YIELDINGS:
        if row.to not in proofs:
            continue
        for name in proofs if row.rule == ANY else (row.rule,):
            if name not in proofs or name in found or _root(row.to, found) == name:
                continue
            if row.same(proofs[name], proofs[row.to]):
                found[name] = row.to
    return {name: _root(to, found) for name, to in found.items()}


def _root(name: str, found: Mapping[str, str]) -> str:
    while name in found:
        name = found[name]
    return name


def reason_for(root: str) -> str:
    return f"the same fault as {root}, which tells of it"


# -- the two places where rules fail -------------------------------------------------------


def without_repetition(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts about one session, each fault told once."""
    verdicts = tuple(verdicts)
    failed = {one.rule: _proof_of(one) for one in verdicts if one.outcome is Outcome.FAIL}
    found = yielding_to(failed) if len(failed) > 1 else {}
    return tuple(
        Verdict(one.rule, Outcome.INCONCLUSIVE, reason_for(found[one.rule]), one.observed)
        if one.rule in found
        else one
        for one in verdicts
    )


def _proof_of(verdict: Verdict) -> Proof:
    return [
        Shown(sent=one.excerpt or "")
        if one.sender == "client" or verdict.rule == "MSG-009"
        else Shown(received=one.excerpt or "")
        for one in verdict.findings
    ]


def proof_of_result(result: RuleResult) -> Proof:
    actual = " ".join(one.actual or "" for one in result.findings)
    return [Shown(one.sent, one.received, actual) for one in result.evidence]
