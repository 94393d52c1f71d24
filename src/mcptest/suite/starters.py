"""Starter suites as text: one file for each tool, prompt or resource, which our loader reads.

Names and values of a server are data: whatever they hold, what is written says just that, or the
test is skipped and a comment says why it could not be said.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.core.safe_text import UNSAFE, escaped, show
from mcptest.suite.sent_message import texts_in
from mcptest.suite.templates import FIXTURE, TEMPLATE

SCHEMA_FILE = ".mcptest.schema.json"
"""Beside the suites, for editors; `mcptest schema suite` prints the same."""
StarterKind: TypeAlias = Literal["tool", "prompt", "resource"]
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*")
_WORDS_WITH_A_MEANING = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {'"': '\\"', "\\": "\\\\"}
_TO_ESCAPE = re.compile(rf'["\\\xa0\ufffc-\uffff]|{UNSAFE}')
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_COMMENT = 160


class WrittenServer(msgspec.Struct, frozen=True):
    """The `server` block, and what has to be said about it."""

    block: Mapping[str, Any] = {}
    comments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Variables of the environment that hold what must not be written down."""


class Starter(msgspec.Struct, frozen=True):
    """One test to be written."""

    kind: StarterKind
    subject: str
    """The tool's or prompt's name, or the resource's URI."""
    args: Mapping[str, Any] = {}
    expect: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"not_error": True})
    skip: str = ""
    """Why it is not to be run as it stands."""
    comments: tuple[str, ...] = ()
    on_fixture: bool = False
    """Whether `{{fixture}}` in it is a variable that we put there."""
    timeout: str = "30s"


class UnwritableError(ValueError):
    """There is no way to say it in YAML; the text says why."""


def starter_yaml(starter: Starter, server: WrittenServer, name: str) -> str:
    """The whole file. Raises UnwritableError for what no YAML file can hold."""
    skip, comments = starter.skip, list(starter.comments)
    known = {FIXTURE} if starter.on_fixture else set()
    args: Any = dict(starter.args)
    subject = starter.subject
    if _has_templates([args, *([subject] if starter.kind != "tool" else [])], known):
        args = _without_templates(args, known)
        # The name of a tool is the one text that is taken as it stands.
        subject = subject if starter.kind == "tool" else _without_templates(subject, known)
        skip = skip or "a value has braces that a suite would read as a variable"
    document: dict[str, Any] = {"name": name}
    if server.block:
        document["server"] = dict(server.block)
    document |= _block(starter.kind, subject, args, starter.expect)
    document["timeout"] = starter.timeout
    if skip:
        comments.append(f"skipped: {skip}")
        document["skip"] = True
    elif len(server.needs) == 1:
        document["skip_unless_env"] = server.needs[0]
    heads = [f"# yaml-language-server: $schema=./{SCHEMA_FILE}"]
    heads += [f"# {show(text, _LONGEST_COMMENT)}" for text in (*server.comments, *comments)]
    return "\n".join((*heads, *_mapping(document, 0))) + "\n"


def _block(
    kind: StarterKind, subject: str, args: Mapping[str, Any], expect: Mapping[str, Any]
) -> dict[str, Any]:
    wanted = dict(expect)
    if kind == "tool":
        return {"assert": {"tool": subject, **({"args": args} if args else {}), "expect": wanted}}
    if kind == "prompt":
        get = {"name": subject, **({"arguments": args} if args else {})}
        return {"assert_prompts": {"get": get, "expect": wanted}}
    return {"assert_resources": {"read": subject, "expect": wanted}}


def _has_templates(value: Any, known: Collection[str]) -> bool:
    found = (match for text in texts_in(value) for match in TEMPLATE.finditer(text))
    return any(match.group(1) not in known for match in found)


def _without_templates(value: Any, known: Collection[str]) -> Any:
    """With a space between the braces, which makes them plain text."""
    if isinstance(value, str):
        return value.replace("{{", "{ {") if _has_templates(value, known) else value
    if isinstance(value, Mapping):
        pairs = value.items()
        return {_without_templates(k, known): _without_templates(v, known) for k, v in pairs}
    if isinstance(value, list):
        return [_without_templates(one, known) for one in value]
    return value


def _mapping(table: Mapping[str, Any], depth: int) -> Iterator[str]:
    margin = "  " * depth
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield f"{margin}{scalar(key)}:"
            yield from _mapping(value, depth + 1)
        elif isinstance(value, list | tuple) and any(
            isinstance(one, Mapping | list | tuple) for one in value
        ):
            yield f"{margin}{scalar(key)}:"
            yield from (f"{margin}  - {flow(item)}" for item in value)
        else:
            yield f"{margin}{scalar(key)}: {flow(value)}"


def flow(value: Any) -> str:
    """A value on one line, in the way that every reader of YAML understands the same."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """One scalar in the way that every reader of YAML understands the same."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise UnwritableError("a value is not a JSON number")
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    text = str(value)
    if _SURROGATE.search(text):
        raise UnwritableError("it has half a surrogate pair, which YAML does not allow")
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS_WITH_A_MEANING and len(text) < 200:
        return text
    quoted = _TO_ESCAPE.sub(lambda found: _ESCAPES.get(found.group()) or escaped(found), text)
    return f'"{quoted}"'


# -- File names for what a server names ----------------------------------------------------------

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])", re.IGNORECASE)
_LONGEST = 60


class FileNames(msgspec.Struct):
    """Gives out names for one folder."""

    _taken: dict[str, int] = {}

    def name_for(self, subject: str, prefix: str = "") -> str:
        """A new name that ends in .yaml. A name that had to be changed carries its own mark."""
        plain = _UNSAFE.sub("_", subject).strip("_-")[:_LONGEST] or "unnamed"
        changed = plain != subject or _RESERVED.fullmatch(plain) is not None
        stem = f"{prefix}{plain}" + (f"-{_mark(subject)}" if changed else "")
        if stem.lower() in self._taken:
            stem = f"{prefix}{plain}-{_mark(subject)}"
        free, number = stem, self._taken.get(stem.lower(), 1)
        while free.lower() in self._taken:
            number += 1
            free = f"{stem}-{number}"
        self._taken[stem.lower()] = self._taken[free.lower()] = number
        return f"{free}.yaml"


def _mark(subject: str) -> str:
    data = subject.encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:8]
