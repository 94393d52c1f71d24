"""Is a tool what it says? What is visible of a server is compared before and after its calls.

Visible are its lists, what its resources say, what its witnesses answer (tools that only read and
take no arguments), and the files of a fixture. What changes by itself proves nothing against a
tool: a change is looked at a second time without a call, and what may hold a clock, an answer or a
resource, is asked for again and again, in turn without a call in between and with one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.safe_text import show, some_of
from mcptest.probe.live_server import Subject
from mcptest.report.audit import Claim
from mcptest.session.pages import Offer, named_items
from mcptest.session.tool_safety import hints_of

_READS = 20
"""Resources that are looked at, at the most."""
_WITNESSES = 8
"""Tools that are asked each time, at the most."""
_SUSPECTS = 3
_TURNS = 3
"""A clock that moves on by chance between two looks does not do so each time."""
_FILES = 5_000
_LONG_LIST = 500
_LARGEST = 16 * 1024 * 1024


_ANSWER = "the response of "
_RESOURCE = "resource "


def claimed(tool: Mapping[str, Any]) -> list[str]:
    """The hints of a tool that can be held against what happens."""
    hints = hints_of(tool)
    return [hint for hint in ("readOnlyHint", "idempotentHint") if hints.get(hint) is True]


class Sight(msgspec.Struct, frozen=True):
    """The visible state: a digest for each thing that can be seen."""

    digests: Mapping[str, bytes]
    """By words that name it for people."""
    restarts: int
    """A server that began anew has another state for another reason."""

    @property
    def tells(self) -> bool:
        """Whether there is anything in it that a tool's work could show in."""
        return any(not name.startswith("the list of") for name in self.digests)

    def in_words(self) -> str:
        kinds = (
            (_RESOURCE, "{} resource"),
            (_ANSWER, "the responses of {} tool"),
            ("file ", "{} file"),
        )
        parts = ["the lists"]
        for beginning, words in kinds:
            count = sum(name.startswith(beginning) for name in self.digests)
            parts += [words.format(count) + "s" * (count != 1)] if count else []
        return ", ".join(parts)


def looked(subject: Subject, fixture: Path | None, without: frozenset[str]) -> Sight:
    """What can be seen of the server now; `without` names lists that are too long for that."""
    offer = subject.offer(without=without)
    names = ("tools", "prompts", "resources", "resource templates")
    lists = zip(names, offer.lists.values(), strict=True)
    seen = {f"the list of {name}": _digest(items) for name, items in lists}
    for resource in named_items(offer.resources, "uri")[:_READS]:
        outcome = subject.ask("resources/read", {"uri": resource["uri"]})
        if outcome.reply is not None and outcome.reply.ok:
            contents = outcome.reply.result.get("contents")
            seen[f"{_RESOURCE}{show(resource['uri'], 100)}"] = _digest(contents)
    if fixture is not None:
        for path in sorted(fixture.rglob("*"))[:_FILES]:
            name = f"file {show(path.relative_to(fixture).as_posix(), 100)}"
            if path.is_symlink() or not path.is_file():
                seen[name] = b"folder" if path.is_dir() else b"other"
            else:
                with path.open("rb") as file:
                    seen[name] = _digest(file.read(_LARGEST))
    return Sight(seen, subject.restarts)


def _answer_of(subject: Subject, tool: str) -> bytes:
    """What it says now; nothing where it does not answer."""
    outcome = subject.call(tool, {})
    if outcome.reply is None or not outcome.reply.ok:
        return b""
    members = ("content", "structuredContent", "isError")
    return _digest([outcome.reply.result.get(member) for member in members])


def _digest(value: Any) -> bytes:
    """The same for the same bytes, or for the same JSON."""
    data = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode("ascii")
    return hashlib.blake2b(data, digest_size=16).digest()


def changes(before: Sight, after: Sight) -> tuple[str, ...]:
    """What is not as it was, by name."""
    names = dict.fromkeys((*before.digests, *after.digests))
    return tuple(name for name in names if before.digests.get(name) != after.digests.get(name))


class Verifier:
    """Calls tools again and looks what that changed. One for all tools of a server."""

    def __init__(
        self, subject: Subject, offer: Offer, fixture: Path | None, witnesses: Sequence[str] = ()
    ) -> None:
        """`witnesses`: tools that only read and take no arguments."""
        self._subject = subject
        self._fixture = fixture
        self._witnesses = tuple(witnesses)
        # Else a long list would be read once for each of its own items.
        self._without = frozenset(one for one, has in offer.lists.items() if len(has) > _LONG_LIST)
        self._restless: set[str] = set()
        """What was seen to change by itself."""
        self._last: Sight | None = None

    def claims(
        self, tool: Mapping[str, Any], arguments: Mapping[str, Any], timeout: float
    ) -> tuple[Claim, ...]:
        """Each hint that can be held against what happens; the tool is called twice."""
        made = claimed(tool)
        if not made:
            return ()
        reads = made[0] == "readOnlyHint"
        name = str(tool["name"])
        # What a witness does is not what the tool does: it is asked before the first look and
        # after the last one. Its own answer may change when it is called.
        witnesses = [one for one in self._witnesses if one != name][:_WITNESSES]
        said = self._answers(witnesses)
        before = self._look() if witnesses or self._last is None else self._last
        restarts = self._subject.restarts
        self._subject.call(name, arguments, timeout=timeout)
        between = self._look() if not reads else before
        self._subject.call(name, arguments, timeout=timeout)
        after = self._look()
        seen = Sight({**after.digests, **self._answers(witnesses)}, after.restarts)
        if self._subject.restarts != restarts or after.restarts != before.restarts:
            self._last = None
            why = "the server was restarted in between"
            return tuple(Claim(hint, None, why) for hint in made)

        def call() -> None:
            self._subject.call(name, arguments, timeout=timeout)

        what = "two calls" if reads else "the second call"
        first = before if reads else between
        return (self._judged(made[0], Sight({**first.digests, **said}, 0), seen, what, call),)

    def _look(self) -> Sight:
        self._last = looked(self._subject, self._fixture, self._without)
        return self._last

    def _answers(self, witnesses: Sequence[str]) -> dict[str, bytes]:
        return {_ANSWER + name: _answer_of(self._subject, name) for name in witnesses}

    def _judged(
        self, hint: str, before: Sight, after: Sight, what: str, call: Callable[[], None]
    ) -> Claim:
        seen = [name for name in changes(before, after) if name not in self._restless]
        suspects = [name for name in seen if name.startswith((_ANSWER, _RESOURCE))]
        changed = [name for name in seen if name not in suspects]
        if changed:
            self._restless.update(changes(self._look(), self._look()))
            changed = [name for name in changed if name not in self._restless]
        changed += [name for name in suspects[:_SUSPECTS] if self._follows(name, call)]
        if changed:
            return Claim(hint, False, f"{what} changed {some_of(changed, 3)}")
        if not after.tells:
            return Claim(hint, None, "the server has no visible state")
        return Claim(hint, True, f"{what} changed nothing visible: {after.in_words()}")

    def _follows(self, name: str, call: Callable[[], None]) -> bool:
        """Whether it changes with each call, and never without one."""
        for _ in range(_TURNS):
            first, control = self._sight_of(name), self._sight_of(name)
            call()
            self._last = None
            if not first or first != control or self._sight_of(name) == control:
                return False
        return True

    def _sight_of(self, name: str) -> bytes:
        if name.startswith(_ANSWER):
            return _answer_of(self._subject, name.removeprefix(_ANSWER))
        return self._look().digests.get(name, b"")
