"""Why an exchange breaks a rule of a corpus: a sentence about the server.

Targets, matchers and schemas are how a rule is written down. A person who reads a finding learns
what the server did and what it should have done, and nothing of that notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcptest.core.message import ABSENT
from mcptest.core.safe_text import show
from mcptest.core.verdict import Finding
from mcptest.rules.corpus.probes import Probe, all_probes
from mcptest.rules.corpus.registry import Row
from mcptest.rules.yielding import ANSWERED, NOISE
from mcptest.suite.matching import Failure, compact_json, error_code, shown
from mcptest.suite.observed import SeenExchange, resolve_exchange, split_target

_ANSWERS: Final = {"result": "a result", "error": "an error", "none": "no response"}
_NEXT: Final = "the next request"
_HARD_TO_READ: Final = frozenset({"schema", "regex"})
_WITH_PLACES: Final = frozenset({"result", "error", "asked", "notifications"})
_LISTS: Final = frozenset({"asked", "notifications"})
_ELSEWHERE: Final = {"stdio": ", or over HTTP.*", "http": r", or over HTTP\+SSE.*"}
"""What a row accepts over other transports only, by the transport of the exchange."""
_HEADERS: Final = {"www-authenticate": "WWW-Authenticate"}
_LONGEST: Final = 160
"""Characters of a value in a sentence."""


def explanations(row: Row, failures: Sequence[Failure], seen: SeenExchange) -> list[Finding]:
    """The expectations of a row that do not hold, as findings: one for each thing that came."""
    wanted: dict[str, dict[str, None]] = {}
    places: dict[str, str] = {}
    for one in failures:
        subject = _Subject.of(row, one, seen)
        came = subject.what_came()
        places.setdefault(came, subject.place)
        wanted.setdefault(came, {})[subject.what_was_expected()] = None
    return [_finding(came, places[came], expected) for came, expected in wanted.items()]


def _finding(came: str, place: str, wanted: Iterable[str]) -> Finding:
    expected = " and ".join(filter(None, wanted))
    message = f"{came}; expected {expected}" if expected else came
    return Finding(
        message=message, sender="server", expected=expected or None, pointer=place or None
    )


def answer_in_words(seen: SeenExchange, to: str = "", *, with_status: bool = True) -> str:
    """What the server answered, whatever was expected: `the server answered with error -32602`."""
    status = seen.http.get("status") if seen.http and with_status else None
    request = f" {to}" if to else ""
    if seen.answer == "none" and not status:
        return f"the server did not answer{request}"
    words = [] if seen.answer == "none" else [_answer(seen)]
    words += [f"HTTP {status}"] if status else []
    return f"{ANSWERED}{request} with {' and '.join(words)}"


def _answer(seen: SeenExchange) -> str:
    if seen.answer == "result":
        failed = isinstance(seen.result, dict) and seen.result.get("isError") is True
        return "a result that has isError" if failed else "a result"
    code = error_code(seen.error)
    return "an error without a code" if code is None else f"error {code}"


@dataclass(frozen=True, slots=True)
class _Subject:
    """One expectation that does not hold, and what it looks at."""

    row: Row
    failure: Failure
    probe: Probe | None
    seen: SeenExchange
    """What came after the step that it looks at."""
    to: str
    """The request of that step, in words; empty for the only one."""
    target: str
    """What is looked at, without the step."""

    @classmethod
    def of(cls, row: Row, failure: Failure, seen: SeenExchange) -> _Subject:
        probe = all_probes().get(row.check.probe)
        root, path = split_target(failure.check)
        if root != "steps":
            return cls(row, failure, probe, seen, "", failure.check)
        step, _, target = path[1:].partition(".")
        to = probe.steps_in_words.get(step, _NEXT) if probe is not None else _NEXT
        return cls(row, failure, probe, seen.steps.get(step, SeenExchange()), to, target)

    @property
    def root(self) -> str:
        return split_target(self.target)[0]

    @property
    def value(self) -> Any:
        return resolve_exchange(self.target, self.seen)[0]

    @property
    def place(self) -> str:
        """Where in the answer, as a path: `tools[8].annotations.title`; empty for all of it."""
        root, path = split_target(self.target)
        if root not in _WITH_PLACES:
            return ""
        parts = self.failure.pointer.split("/")[1:]
        if parts and ("[*]" in path or root in _LISTS):
            parts = parts[1:]  # which of the messages it is says nothing
        members = (f"[{part}]" if part.isdigit() else f".{part}" for part in parts)
        place = path.replace("[*]", "") + "".join(members)
        return show(place.removeprefix("."), _LONGEST)

    # -- what was expected -----------------------------------------------------------------

    def what_was_expected(self) -> str:
        """What the rule asks for, after the word "expected"; empty where the sentence says it."""
        used = [one.matcher for one in self.row.expect if one.target == self.failure.check]
        wanted = self.failure.expected
        held = (name for matcher in used for name, one in matcher.items() if one == wanted)
        name = next(held, next(iter(used[0])) if used else "")
        if self.row.says and (len(self.row.expect) == 1 or name in _HARD_TO_READ):
            way = self.seen.transport.get("transport", "")
            return re.sub(_ELSEWHERE.get(way, "$"), "", self.row.says)
        if self.root == "probe":
            return ""
        words = _in_words(self.target, name, wanted)
        is_unnamed = self.root in {"result", "error"} and self.target != "error.code"
        return f"{self.place}: {words}" if is_unnamed and self.value is ABSENT else words

    # -- what came instead -----------------------------------------------------------------

    def what_came(self) -> str:
        match self.root:
            case "probe":
                return self._fact()
            case "http":
                return self._http()
            case "transport_observation":
                return _connection(self.seen.transport)
            case "asked" | "notifications":
                return self._messages()
            case "result" | "error" if self.seen.answer == self.root and self.value is not ABSENT:
                if self.target != "error.code":
                    at = f" as {self.place}" if self.place else ""
                    return f"the server returned {self._part()}{at}"
            case "result" | "error" if self.seen.answer == self.root:
                return f"the server returned {_ANSWERS[self.root]} without {self.place}"
        return answer_in_words(self.seen, self.to, with_status=self.root == "exchange")

    def _fact(self) -> str:
        name = re.split(r"[.\[]", self.target)[1]
        probe, facts = self.probe, self.seen.facts
        if probe is None or name not in probe.failures or name not in facts:
            return "the server did not answer all requests of the check"
        sentence = probe.failures[name]
        for one in probe.facts:
            sentence = sentence.replace(f"{{{one}}}", _plain(facts.get(one)))
        return sentence

    def _http(self) -> str:
        http = self.seen.http
        part = self.target.removeprefix("http.").removeprefix("header.")
        if part == "status" or not http:
            return answer_in_words(SeenExchange(http=http) if http else self.seen, self.to)
        name = part if part == "body" else f"{_HEADERS.get(part, part.title())} header"
        request = f" {self.to}" if self.to else ""
        if self.value is ABSENT:
            return f"the server answered{request} without the {name}"
        return f"the server answered{request} with the {name} {shown(self.value)}"

    def _messages(self) -> str:
        """Requests and notifications of the server."""
        sent = self.seen.asked if self.root == "asked" else self.seen.notifications
        methods = [str(one.get("method")) for one in sent if isinstance(one, Mapping)]
        names = show(", ".join(dict.fromkeys(methods)), _LONGEST)
        if not names:
            return f"the server sent no {'request' if self.root == 'asked' else 'notification'}"
        if self.place in {"", "method"}:
            return f"the server sent {names}"
        return f"the server sent {names} with {self._part()} as {self.place}"

    def _part(self) -> str:
        """The value at fault: the part of it that the pointer leads to."""
        value = self.value
        for part in self.failure.pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and name.isdigit() and int(name) < len(value):
                value = value[int(name)]
            elif isinstance(value, Mapping) and name in value:
                value = value[name]
        if isinstance(value, list) and "[*]" in self.target and len(value) == 1:
            value = value[0]
        if isinstance(value, list) and len(compact_json(value)) > _LONGEST:
            return f"an array of {len(value)} items"
        return show(shown(value), _LONGEST)


def _in_words(target: str, name: str, argument: Any) -> str:
    if target == "answer":
        asked = argument if isinstance(argument, list | tuple) else (argument,)
        return " or ".join(_ANSWERS.get(one, str(one)) for one in asked)
    if name == "exact" and target in {"error.code", "http.status"}:
        return f"{'error' if target == 'error.code' else 'HTTP'} {argument}"
    if target == "http.status" and name == "minimum":
        return f"an HTTP status of {argument} or above"
    if target == "asked[*].method" and name == "not_contains":
        return f"no {argument} request"
    value = shown(argument)
    return {
        "exact": value,
        "not_exact": f"anything but {value}",
        "not_contains": f"anything but {value}",
        "type": f"{'an' if str(argument)[:1] in 'aio' else 'a'} {argument}",
        "exists": "a value" if argument else "no value",
        "schema": "a value that the specification allows",
        "regex": f"a match for {value}",
        "max_length": "none" if argument == 0 else f"at most {value} items",
        "min_length": f"at least {value} items",
        "minimum": f"at least {value}",
        "maximum": f"at most {value}",
    }.get(name, f"{name.replace('_', ' ')} {value}")


def _connection(transport: Mapping[str, Any]) -> str:
    if not transport.get("alive", True):
        return "the server stopped running"
    if unusable := transport.get("unusable"):
        often = f" ({unusable} times)" if unusable != 1 else ""
        return f"{NOISE}{often}"
    way = transport.get("transport")
    return f"the server uses the transport {way}" if way else "the server did not answer"


def _plain(value: Any) -> str:
    """The value of a fact in a sentence: a list without brackets, a text without quotes."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    return show(value if isinstance(value, str) else compact_json(value), _LONGEST)
