"""Root causes: what went wrong once and kept many rules from being judged."""

from __future__ import annotations

from collections.abc import Iterable

from mcptest.model.compliance import Evidence, RootCause, RuleResult
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.masking import Masker
from mcptest.model.show import show, show_lines

SHOWN = 2_000
UNAUTHORIZED = frozenset({401, 403})
_UNCHECKED = "unchecked"
_HINTS = {
    "exited": "catch errors per request: no message of a client may end the process",
    "silence": "answer every request, also one that can't be served, with an error",
    "banner": "write nothing but messages to stdout; logs belong on stderr",
    "unauthorized": "give a token with --header 'Authorization=Bearer …'",
    _UNCHECKED: "offer schemas without references that multiply, and lists that end",
    "unreachable": "the server has to be there for as long as it is judged",
}

_ENDS_BY_ITSELF = (
    "it ends whatever it is asked: give it what it needs, such as a backend or a variable (--env)"
)


class Causes:
    """The causes of one run, each told once."""

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._found: dict[str, RootCause] = {}

    def note(self, name: str, message: str, evidence: tuple[Evidence, ...] = ()) -> str:
        """Tell of a cause; the first of its kind is the one that is kept. Returns its id."""
        if name not in self._found:
            self._found[name] = RootCause(name, self._safe(message), _HINTS.get(name, ""), evidence)
        return name

    def _safe(self, message: str) -> str:
        return show_lines(self._masker.text(message), 600)

    def note_unchecked(self, message: str) -> str:
        """Tell of something that costs too much to look at. Returns the id of the cause."""
        names = [name for name in self._found if name.startswith(_UNCHECKED)]
        safe = self._safe(message)
        known = next((name for name in names if self._found[name].message == safe), None)
        if known is not None:
            return known
        name = f"{_UNCHECKED}-{len(names) + 1}" if names else _UNCHECKED
        self._found[name] = RootCause(name, safe, _HINTS[_UNCHECKED])
        return name

    def note_error(self, error: PeerError, evidence: tuple[Evidence, ...] = ()) -> str:
        """The cause behind an error of a connection."""
        return self.note(_cause_of(error), error.message, evidence)

    def note_ending(self, error: PeerError) -> str:
        """The server ends while nothing is asked of it: whatever else ended it is put down to that.

        Returns the id of the cause.
        """
        self._found.pop("exited", None)
        name = self.note("exited", f"asked for nothing but a sign of life, {error.message}")
        known = self._found[name]
        self._found[name] = RootCause(name, known.message, _ENDS_BY_ITSELF, known.evidence)
        return name

    def counted(self, results: Iterable[RuleResult]) -> tuple[RootCause, ...]:
        """All causes with how many rules each kept from being judged."""
        held: dict[str, int] = {}
        for result in results:
            if result.cause:
                held[result.cause] = held.get(result.cause, 0) + 1
        return tuple(
            RootCause(one.id, one.message, one.hint, one.evidence, held.get(one.id, 0))
            for one in self._found.values()
        )


def _cause_of(error: PeerError) -> str:
    if error.kind is ErrorKind.EXITED:
        return "exited"
    return "silence" if error.kind is ErrorKind.TIMEOUT else "unreachable"


def evidence_of(sent: bytes, received: bytes, shown: int = SHOWN) -> Evidence:
    """The bytes, which hold no secret any more, as they may be shown."""
    return Evidence(show(sent, shown), show(received, shown))
