"""What an expectation may look at: an answer, an exchange, and the targets that name their parts.

A check of it gives a failure or none; what passes was checked at least once.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import close_matches
from mcptest.core.message import ABSENT, Flaw, json_type
from mcptest.suite.matching import Failure, compact_json, match, quote, trim_space
from mcptest.suite.model import Expectation
from mcptest.suite.regex import as_bytes
from mcptest.wire.envelope import ARRAYS, LIST_MEMBERS, TEXT_MEMBERS
from mcptest.wire.json_text import costs_too_much, read_json

# What a content of each type must have beside its type.
_NEEDED = {
    "text": (),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}


def text_of(method: str, result: Any) -> str:
    """The text under test of a result; empty when there is none."""
    if result is ABSENT:
        return ""
    if not isinstance(result, dict) or method not in TEXT_MEMBERS:
        return compact_json(result)
    return "\n".join(_texts(method, result))


def _texts(method: str, result: dict[str, Any]) -> Iterator[str]:
    description = result.get("description")
    if method == "prompts/get" and isinstance(description, str) and description:
        yield description
    items = result.get(TEXT_MEMBERS[method])
    for item in items if isinstance(items, list) else ():
        match method, item:
            case "tools/call", {"type": "text", "text": str(text)}:
                yield text
            case "resources/read", {"text": str(text)}:
                yield text
            case "resources/read", {"blob": str(blob)}:
                media_type = item.get("mimeType")
                named = quote(media_type if isinstance(media_type, str) else "")
                yield f"<blob mimeType={named} len={len(blob)}>"
            case "prompts/get", {"content": {"type": "text", **content}}:
                words = content.get("text")
                yield words if isinstance(words, str) else ""
            case "prompts/get", dict():
                yield compact_json(item.get("content"))


def merge_pages(method: str, pages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All pages of a list as one result; `nextCursor` only stays when the last page had one."""
    member = LIST_MEMBERS[method]
    merged = dict(pages[0])
    merged.pop("nextCursor", None)
    if len(pages) > 1 and all(isinstance(page.get(member), list) for page in pages):
        merged[member] = [item for page in pages for item in page[member]]
    if "nextCursor" in pages[-1]:
        merged["nextCursor"] = pages[-1]["nextCursor"]
    return merged


def listed_by(method: str, result: Any) -> Any:
    """The array that an answer to this method is about; None for one that is about none."""
    if not isinstance(result, dict):
        return None
    if method == "completion/complete":
        completion = result.get("completion")
        return completion.get("values") if isinstance(completion, dict) else None
    return result.get(LIST_MEMBERS[method]) if method in LIST_MEMBERS else None


def result_problem(method: str, result: Any) -> str | None:
    """Why the result is not one that `method` may have: such an answer fails every test."""
    if result is ABSENT:
        return None
    if not isinstance(result, dict):
        return f"the result is not an object but {json_type(result)}"
    member = ARRAYS.get(method)
    if method == "completion/complete":
        result, member = result.get("completion"), "values"
        if not isinstance(result, dict):
            return "completion is missing"
    if member is None:
        return None
    items = result.get(member, ABSENT)
    if items is ABSENT:
        return f"{member} is missing"
    if not isinstance(items, list):
        return f"{member} is not an array"
    item_problem = _ITEM_PROBLEMS.get(method, lambda item: None)
    return next(filter(None, map(item_problem, items)), None)


def content_problem(content: Any) -> str | None:
    """Why this is no content block, in the words that mcp-assert has for it."""
    if not isinstance(content, dict):
        return "content is not an object"
    kind = content.get("type")
    if kind == "resource":
        missing = "resource" not in content
        return "resource is missing" if missing else _embedded_problem(content["resource"])
    needed = _NEEDED.get(kind) if isinstance(kind, str) else None
    if needed is None:
        return f"unsupported content type: {kind if isinstance(kind, str) else json_type(kind)}"
    if not all(isinstance(content.get(name), str) and content[name] for name in needed):
        return f"{kind} {' or '.join(needed)} is missing"
    return None


def _embedded_problem(resource: Any) -> str | None:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return "resource uri is missing"
    if not isinstance(resource.get("text"), str) and not isinstance(resource.get("blob"), str):
        return "unsupported resource type"
    return None


def _message_problem(message: Any) -> str | None:
    if not isinstance(message, dict) or "content" not in message:
        return "content is missing"
    return content_problem(message["content"])


_ITEM_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "tools/call": content_problem,
    "prompts/get": _message_problem,
    "resources/read": _embedded_problem,
}


# -- The text under test read as JSON ------------------------------------------------------------

_HARMLESS = {Flaw.LONE_SURROGATE, Flaw.INVALID_UTF8}
_BEGINNINGS = frozenset('{["-0123456789tfn')
_decode = msgspec.json.Decoder().decode
_JSON_SPACE = " \t\n\r"


def whole_text(text: str) -> tuple[Any, str]:
    """The value and no reason, or ABSENT and why the text is not JSON."""
    value, problems = read_json(text.encode("utf-8", "surrogatepass"))
    faults = [problem for problem in problems if problem.flaw not in _HARMLESS]
    if not faults and value is not ABSENT:
        return value, ""
    return ABSENT, _why_not(text, faults[0].reason if faults else "not JSON")


def text_or_first_line(text: str) -> tuple[Any, str]:
    """As `whole_text`; when the whole is not JSON, the first line that is JSON by itself."""
    value, reason = whole_text(text)
    if value is not ABSENT:
        return value, reason
    # Most lines are no JSON, and nobody asks why, so this is quick.
    for line in map(trim_space, text.split("\n")):
        if not line or line[0] not in _BEGINNINGS:
            continue
        raw = line.encode("utf-8", "replace")
        if costs_too_much(raw):
            continue
        try:
            return _decode(raw), ""
        except (ValueError, RecursionError):
            # A lone surrogate is all that the quick reader refuses without need.
            value = whole_text(line)[0] if "\\u" in line else ABSENT
        if value is not ABSENT:
            return value, ""
    return ABSENT, reason


def _why_not(text: str, reason: str) -> str:
    """The words that Go has for the commonest mistakes; ours for the rest."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip(_JSON_SPACE):
            return "unexpected end of JSON input"
        character = text[error.pos]
        if error.msg == "Extra data":
            return f"invalid character {character!r} after top-level value"
        if error.msg == "Expecting value":
            return f"invalid character {character!r} looking for beginning of value"
    except (ValueError, RecursionError):
        pass  # the reason that the reader gave is better
    return reason


class Evaluation(msgspec.Struct, frozen=True):
    """`checked` counts the checks that were asked for and made; what passes made at least one."""

    failures: tuple[Failure, ...]
    checked: int

    @property
    def passed(self) -> bool:
        return not self.failures


Outcome: TypeAlias = Failure | None
"""One check that was made: None when it holds."""


def evaluation_of(
    outcomes: Iterable[Outcome], *, all_failures: bool, unasked: Iterable[Outcome] = ()
) -> Evaluation:
    """Take outcomes until the first failure, or all of them.

    `unasked` are checks that are made without being asked for: they can fail a test, but do not
    count as having checked something.
    """
    failures: list[Failure] = []
    checked = 0
    for outcome in outcomes:
        checked += 1
        if outcome is not None:
            failures.append(outcome)
            if not all_failures:
                return Evaluation(tuple(failures), checked)
    if not checked:
        failures.append(Failure("expect", "nothing was checked"))
    if not failures or all_failures:
        failures.extend(outcome for outcome in unasked if outcome is not None)
    return Evaluation(tuple(failures), checked)


# -- What an expectation may look at -------------------------------------------------------------

_ABOUT_A_RESOURCE = ("resources/read", "resources/subscribe", "resources/unsubscribe")


class FileView(Protocol):
    """The files that a test may look at; whoever runs the test provides it."""

    def read(self, path: str) -> bytes | None:
        """The content, or None when there is no such file or it can't be read."""

    def exists(self, path: str) -> bool:
        """Whether anything is there, a folder included."""


class Observed(msgspec.Struct, frozen=True, dict=True):
    """An answer to a method as the expectations see it, and what happened around it."""

    method: str
    result: Any = ABSENT
    """The raw result, or ABSENT when the answer was an error."""
    error: Any = None
    """The JSON-RPC error of the answer; None when there was none."""
    subject: str = ""
    """What the method was about: the tool, the prompt or the resource."""
    duration: float = 0.0
    """Seconds from the request to its answer."""
    progress: int | None = None
    """How many progress notifications came; None when nobody counted."""
    notifications: tuple[Mapping[str, Any], ...] = ()
    """The notifications that came, each as the object that was sent."""
    files: FileView | None = None
    """None when nobody looked at the disk: then no expectation on a file holds."""
    snapshots: Mapping[str, bytes | None] = {}
    """Contents before the call, by path; None for a file that was not there."""
    output_schema: Any = None
    """The tool's `outputSchema`, where it has one."""

    @functools.cached_property
    def text(self) -> str:
        """The text under test; of a JSON-RPC error its message."""
        if self.error is None:
            return text_of(self.method, self.result)
        message = self.error.get("message") if isinstance(self.error, Mapping) else None
        return message if isinstance(message, str) else ""

    @functools.cached_property
    def encoded(self) -> bytes:
        return as_bytes(self.text)

    @functools.cached_property
    def document(self) -> tuple[Any, str]:
        """The text as JSON, or ABSENT and why it is not."""
        return text_or_first_line(self.text)

    @property
    def is_error(self) -> bool:
        return isinstance(self.result, dict) and self.result.get("isError") is True

    @property
    def structured(self) -> Any:
        of = self.result if isinstance(self.result, dict) else {}
        return of.get("structuredContent", ABSENT)

    @property
    def problem(self) -> str:
        """Why the result is none that this method may have; empty when it is fine."""
        return (result_problem(self.method, self.result) or "") if self.error is None else ""


def failing_call(method: str, subject: str = "") -> str:
    """How mcp-assert begins to say that a call failed."""
    if method == "tools/call":
        return f"tool call {subject} failed"
    if not subject or method not in ("prompts/get", *_ABOUT_A_RESOURCE):
        return f"{method} failed"
    return f"{method} failed for {quote(subject) if method == 'prompts/get' else subject}"


# -- Targets: what a row of the list form looks at, `target: result.content[0].text` -------------

_ROOT = r"\$|[a-z_]+"


class TargetRoot(msgspec.Struct, frozen=True):
    """A root that targets begin with."""

    about: str
    value: Callable[[Any], tuple[Any, str]]
    """Gives it, of an answer or of an exchange, and why there is none when it is ABSENT."""
    has_parts: bool = True
    """Whether a path may follow."""


def _unless_none(value: Any, missing: str) -> tuple[Any, str]:
    return (ABSENT, missing) if value is None else (value, "")


def _document(subject: Observed) -> tuple[Any, str]:
    value, reason = subject.document
    return value, f"the text is not valid JSON: {reason}" if reason else ""


TARGETS: Mapping[str, TargetRoot] = {
    "text": TargetRoot("the text under test", lambda s: (s.text, ""), has_parts=False),
    "$": TargetRoot("the text read as JSON; a path may follow, as in json_path", _document),
    "result": TargetRoot(
        "the raw result; a path may follow: `result.content[0].type`",
        lambda s: (s.result, "there is no result"),
    ),
    "structured": TargetRoot(
        "the `structuredContent`; a path may follow",
        lambda s: (s.structured, "there is no structuredContent"),
    ),
    "is_error": TargetRoot("the `isError` flag", lambda s: (s.is_error, ""), has_parts=False),
    "error": TargetRoot(
        "the JSON-RPC error of the call; `error.code`, `error.message`",
        lambda s: _unless_none(s.error, "the call returned no error"),
    ),
    "duration": TargetRoot(
        "seconds from the request to its response", lambda s: (s.duration, ""), has_parts=False
    ),
    "progress": TargetRoot(
        "the number of progress notifications; only in `assert`",
        lambda s: _unless_none(s.progress, "progress was not captured"),
        has_parts=False,
    ),
    "notifications": TargetRoot(
        "the notifications, as a list; `notifications[*].method`",
        lambda s: (list(s.notifications), ""),
    ),
}


def split_target(target: str) -> tuple[str, str]:
    """The root and the path behind it, which is empty when there is none."""
    found = re.match(_ROOT, target)
    root = found.group() if found else ""
    return root, target[len(root) :]


def target_problem(
    target: str, roots: Mapping[str, TargetRoot] = TARGETS, others: Iterable[str] = ()
) -> str | None:
    """Why nothing can be looked at under this name, or None: for when a suite is loaded."""
    root, path = split_target(target)
    known = roots.get(root)
    if known is None or (path and path[0] not in ".["):
        names = (*roots, *others)
        near = close_matches(re.split(r"[.\[]", target, maxsplit=1)[0], names, 1)
        hint = f", did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"
        return f"unknown target {quote(target)}{hint}"
    if path and not known.has_parts:
        return f"{root} has no parts, so {quote(path)} leads nowhere"
    return _path_problem(target, path)


def resolve(target: str, subject: Observed) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none.

    A path that may lead to several values gives the list of all of them.
    """
    root, path = split_target(target)
    return _follow(path, *TARGETS[root].value(subject))


# -- What a rule of a corpus looks at ------------------------------------------------------------

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OF_HTTP = re.compile(r"\.?(status|body|header\.[a-z0-9-]+)")


class SeenExchange(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen after something was sent. Whoever drives the server fills it in."""

    result: Any = ABSENT
    error: Any = ABSENT
    http: Mapping[str, Any] | None = None
    """`status`, `headers` by lower-case name, and `body` as text; None where there is no HTTP."""
    notifications: tuple[Any, ...] = ()
    asked: tuple[Any, ...] = ()
    """What the server asked of the client, by request or inside an input-required result:
    objects with `method` and `params`."""
    transport: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """`transport`, `alive`, `unusable`: how the connection fared."""
    steps: Mapping[str, SeenExchange] = msgspec.field(default_factory=dict)
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def answer(self) -> str:
        if self.error is not ABSENT:
            return "error"
        return "none" if self.result is ABSENT else "result"

    @property
    def whole(self) -> dict[str, Any]:
        """As one object, for a schema that allows one thing or another."""
        parts = {"result": self.result, "error": self.error, "http": self.http or ABSENT}
        seen = {name: part for name, part in parts.items() if part is not ABSENT}
        transport = self.transport.get("transport", "")
        return {"answer": self.answer, "asked": list(self.asked), "transport": transport, **seen}


EXCHANGE_TARGETS: Mapping[str, TargetRoot] = {
    "answer": TargetRoot(
        "`result`, `error`, or `none` without a response in time", lambda e: (e.answer, ""), False
    ),
    "result": TargetRoot(
        "the result; a path may follow", lambda e: (e.result, "there is no result")
    ),
    "error": TargetRoot(
        "the JSON-RPC error; a path may follow: `error.code`",
        lambda e: (e.error, "the server returned no error"),
    ),
    "exchange": TargetRoot(
        "the exchange as one object (`answer`, `result`, `error`, `http`, `asked`, `transport`), "
        "for a schema with alternatives",
        lambda e: (e.whole, ""),
    ),
    "notifications": TargetRoot(
        "the notifications during the exchange, as a list", lambda e: (list(e.notifications), "")
    ),
    "asked": TargetRoot(
        "requests of the server, sent as such or in an input-required result",
        lambda e: (list(e.asked), ""),
    ),
    "transport_observation": TargetRoot(
        "the state of the connection: `transport`, `alive`, `unusable`",
        lambda e: (dict(e.transport) or ABSENT, "the transport was not observed"),
    ),
}
SPECIAL_TARGETS: Mapping[str, str] = {
    "http": "`http.status`, `http.body`, `http.header.NAME`",
    "steps": "`steps.NAME.` and any target: the result of that step of the probe",
    "probe": "`probe.FACT`: a fact that the probe found; a path may follow",
}


def exchange_target_problem(
    target: str, steps: Collection[str] = (), facts: Collection[str] = ()
) -> str | None:
    """Why nothing can be looked at under this name, or None."""
    root, rest = split_target(target)
    if root == "http":
        known_part = _OF_HTTP.fullmatch(rest)
        return None if known_part else f"{quote(target)}: {SPECIAL_TARGETS['http']}"
    if root in {"steps", "probe"}:
        return _named_problem(target, root, rest, steps, facts)
    return target_problem(target, EXCHANGE_TARGETS, SPECIAL_TARGETS)


def _named_problem(
    target: str, root: str, rest: str, steps: Collection[str], facts: Collection[str]
) -> str | None:
    known = steps if root == "steps" else facts
    found = _NAME.match(rest[1:]) if rest.startswith(".") else None
    name = found.group() if found else ""
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "the check has none"
        word = "step" if root == "steps" else "fact"
        return f"{quote(target)} is not a {word} of the check: {there}"
    after = rest[1 + len(name) :]
    if root == "probe":
        return _path_problem(target, after)
    if not after.startswith("."):
        return f"{quote(target)} does not name a part of the step"
    return exchange_target_problem(after[1:])


def _path_problem(target: str, path: str) -> str | None:
    if not path:
        return None
    from mcptest.suite.jsonpath import path_problem

    problem = path_problem("$" + path)
    return None if problem is None else f"{quote(target)}: {problem}"


def resolve_exchange(target: str, seen: SeenExchange) -> tuple[Any, str]:
    """The value under test, or ABSENT and why there is none."""
    root, rest = split_target(target)
    if root == "http":
        if seen.http is None:
            return ABSENT, "it was not sent over HTTP"
        part = rest.removeprefix(".")
        if part in {"status", "body"}:
            return seen.http.get(part, ABSENT), f"there is no {part}"
        name = part.removeprefix("header.")
        headers = seen.http.get("headers") or {}
        return headers.get(name, ABSENT), f"there is no header {name}"
    if root == "steps":
        name, _, inner = rest[1:].partition(".")
        step = seen.steps.get(name)
        if step is None:
            return ABSENT, f"the step {name} did not run"
        return resolve_exchange(inner, step)
    if root == "probe":
        found = _NAME.match(rest[1:])
        name = found.group() if found else ""
        value = seen.facts.get(name, ABSENT)
        return _follow(rest[1 + len(name) :], value, f"the probe did not find {name}")
    return _follow(rest, *EXCHANGE_TARGETS[root].value(seen))


def _follow(path: str, value: Any, missing: str) -> tuple[Any, str]:
    if value is ABSENT or not path:
        return value, missing
    from mcptest.suite.jsonpath import PathError, value_at

    try:
        return value_at(value, "$" + path), ""
    except PathError as error:
        return ABSENT, str(error)


def judge_exchange(expect: Collection[Expectation], seen: SeenExchange) -> Evaluation:
    """Every expectation against what was seen; all that do not hold are told."""
    outcomes = (failure_of(one, *resolve_exchange(one.target, seen)) for one in expect)
    return evaluation_of(outcomes, all_failures=True)


def failure_of(one: Expectation, value: Any, missing: str = "") -> Outcome:
    """Why this value is not what is expected, or None."""
    found = match(one.matcher, value, missing)
    return found and replace(found, check=one.target, message=f"{one.target}: {found.message}")
