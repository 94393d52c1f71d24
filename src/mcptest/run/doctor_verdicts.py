"""How a probe says what it concluded, and the words that several probes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from mcptest.model.compliance import Evidence
from mcptest.model.doctor import Judged, Verdict
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.run.compliance.conversation import Asked
from mcptest.run.doctor_examination import Examination
from mcptest.run.doctor_watch import proof

Probe: TypeAlias = Callable[[Examination], Judged]
Proof: TypeAlias = Asked | Evidence
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
_MOST_PROOFS = 3
_MOST_NAMES = 5


def breaks(detail: str, *proofs: Proof, advice: str = "") -> Judged:
    return Judged(Verdict.BREAKS, detail, _evidence(proofs), advice)


def ready(detail: str, *proofs: Proof, advice: str = "") -> Judged:
    return Judged(Verdict.READY, detail, _evidence(proofs), advice)


def not_used(detail: str, *proofs: Proof) -> Judged:
    return Judged(Verdict.NOT_USED, detail, _evidence(proofs))


def unknown(detail: str, *proofs: Proof, advice: str = "") -> Judged:
    return Judged(Verdict.UNKNOWN, detail, _evidence(proofs), advice)


def unchecked(detail: str) -> Judged:
    return Judged(Verdict.UNKNOWN, detail, unchecked=True)


def _evidence(proofs: Iterable[Proof]) -> tuple[Evidence, ...]:
    found = [one if isinstance(one, Evidence) else proof(one) for one in proofs]
    return tuple(one for one in found if one.sent or one.received)[:_MOST_PROOFS]


# -- an answer in words --------------------------------------------------------------------


def code_of(asked: Asked) -> int | None:
    error = asked.exchange.error
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int else None


def status_of(asked: Asked) -> int | None:
    http = asked.exchange.http
    return http["status"] if http is not None else None


def is_result(asked: Asked) -> bool:
    return isinstance(asked.exchange.result, dict)


def came(asked: Asked) -> bool:
    """Whether there was any answer, of HTTP or of JSON-RPC."""
    return asked.exchange.answer != "none" or asked.exchange.http is not None


def said(asked: Asked) -> str:
    """What came, in a few words: `a result`, `-32601 (HTTP 404)`, `nothing`."""
    status = status_of(asked)
    told = "" if status is None else f"HTTP {status}"
    error = asked.exchange.error
    if error is not ABSENT:
        code = error.get("code") if isinstance(error, dict) else error
        words = f"the error {show(str(code), 20)}"
    elif asked.exchange.result is not ABSENT:
        words = "a result"
    else:
        return told or "nothing"
    return f"{words} ({told})" if told else words


def some(names: Iterable[Any]) -> str:
    """The first names of a list, safe to show, and how many more there are."""
    shown = [show(str(name), 60) for name in names]
    more = len(shown) - _MOST_NAMES
    listed = ", ".join(shown[:_MOST_NAMES])
    return f"{listed} and {more} more" if more > 0 else listed


def uncalled_in_words(examination: Examination) -> str:
    names = examination.uncalled
    return (
        f"{len(names)} of {len(list(examination.tools))} tools were not called ({some(names)}): "
        "without --allow-tool NAME only those are that say they only read"
    )
