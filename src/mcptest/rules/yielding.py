"""Which rule yields to which: one fault is one finding, told by the rule that says most about it.

A rule declares to which other it yields where both failed over the same thing, and what is the
same then: the same message, the same request without an answer, an id that came back changed, an
answer of the same kind, an answer to a notification. A rule that yields is inconclusive, and names
the other. Where a message has a wrong shape, `rules/shapes.py` says the same for parts of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from mcptest.core.judgement import RuleResult
from mcptest.core.verdict import Outcome, Verdict
from mcptest.rules.declaration import RULES, Rule, Same, shown_by
from mcptest.wire.envelope import decode

if TYPE_CHECKING:  # a session is judged without the corpora
    from mcptest.rules.corpus.registry import CorpusRule

NOISE: Final = "the server sent output that is not an MCP message"
ANSWERED: Final = "the server answered"
"""How findings about noise and about responses begin (`rules/corpus/explanation.py`)."""
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)')


class Shown(msgspec.Struct, frozen=True):
    """One proof of a failing rule, as it is shown."""

    sent: str = ""
    received: str = ""
    said: tuple[str, ...] = ()
    """What a rule of a corpus says of the server, one sentence for each finding."""


Proof: TypeAlias = Sequence[Shown]


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
    return bool(one) and all(shown.said and _all_begin(shown, NOISE) for shown in one)


def same_answer(one: Proof, other: Proof) -> bool:
    """Both got the same kind of answer: a result, or an error with the same code."""
    known = {_kind_of(shown.received) for shown in other}
    return bool(one) and all(_kind_of(shown.received) in known for shown in one)


def same_reply(one: Proof, other: Proof) -> bool:
    """Both saw a notification answered, and the first has nothing else to say."""
    is_all = all(_all_begin(shown, ANSWERED) for shown in one)
    return is_all and any(map(_is_reply, one)) and any(map(_is_reply, other))


def _all_begin(shown: Shown, words: str) -> bool:
    return all(sentence.startswith(words) for sentence in shown.said)


def _is_reply(shown: Shown) -> bool:
    """Whether something without an id came where nothing, or a notification, was sent."""
    return bool(shown.received) and not _ID.search(shown.sent) and not _ID.search(shown.received)


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


_SAME: Final[Mapping[Same, Callable[[Proof, Proof], bool]]] = {
    "message": same_message,
    "silence": same_silence,
    "id": same_id,
    "noise": only_noise,
    "answer": same_answer,
    "reply": same_reply,
}


# -- who yields ----------------------------------------------------------------------------


def yielding_to(
    proofs: Mapping[str, Proof], corpus: Mapping[str, CorpusRule] | None = None
) -> dict[str, str]:
    """Of the rules that failed, with the proof of each: those that yield, and to which one.

    What a rule yields to stands in its declaration, or for rules of a corpus in the registry.
    """
    declared: Mapping[str, Rule | CorpusRule] = RULES if corpus is None else {**RULES, **corpus}
    known = [name for name in proofs if name in declared]
    yields = [(one, to, same) for one in known for to, same in declared[one].yields_to.items()]
    roots = [(to, same) for to in proofs if to in RULES and (same := RULES[to].absorbs)]
    yields += [(name, to, same) for to, same in roots for name in proofs]
    found: dict[str, str] = {}
    for name, to, same in yields:
        if to not in proofs or name in found or _root(to, found) == name:
            continue
        if _SAME[same](proofs[name], proofs[to]):
            found[name] = to
    return {name: _root(to, found) for name, to in found.items()}


def passes_in_doubt(passed: Iterable[str], failed: Iterable[str]) -> dict[str, str]:
    """Of the rules that passed: those about missing answers, where ids came back changed.

    A request whose answer bears another id was not answered, so such a pass says only that nobody
    waited for it to the end, and that depends on the pace of the machine. A rule that yields to
    that one itself may fail for other reasons: a stray answer leaves no request unanswered.
    """
    failed = set(failed)
    return {
        name: to
        for name in passed
        if name in RULES and shown_by(name) == "missing answer"
        for to, same in RULES[name].yields_to.items()
        if same == "id" and to in failed and not (to in RULES and RULES[to].yields_to)
    }


def _root(name: str, found: Mapping[str, str]) -> str:
    while name in found:
        name = found[name]
    return name


def reason_for(root: str) -> str:
    return f"same fault as {root}"


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
        if one.sender == "client" or shown_by(verdict.rule) == "missing answer"
        else Shown(received=one.excerpt or "")
        for one in verdict.findings
    ]


def proof_of_result(result: RuleResult) -> Proof:
    said = tuple(one.message for one in result.findings)
    return [Shown(one.sent, one.received, said) for one in result.evidence]
