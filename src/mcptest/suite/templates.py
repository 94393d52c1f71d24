"""`${VAR}`, `${VAR:-default}` and `$VAR` in what a server is given, from the caller's environment.

Pure: the environment is handed in. What was used is told, because it may be secret; what was
missing is told too, because nobody should be given an empty key without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mcptest.core.redaction import secrets_of_environment, secrets_of_headers
from mcptest.core.safe_text import show
from mcptest.suite.fields import DECLARED, Reading
from mcptest.suite.model import Block, ServerSpec, SetupStep, TrajectoryBlock
from mcptest.suite.reading import ListNode, MappingNode, Node, ScalarNode, SuiteSource, did_you_mean

_T = TypeVar("_T", bound=msgspec.Struct)
# Compiled when they are needed: most servers are given no variables.
_BRACED = r"\$\{([^}]*)\}"
_REFERENCE = r"\$\$|\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)"
_NAMED = r"(?s:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?)"


class Expansion(msgspec.Struct):
    """Fills in variables, and keeps which values were used and which names were not set."""

    environ: Mapping[str, str]
    used: dict[str, str] = {}
    """Variables and their values."""
    unset: dict[str, str] = {}
    """Names, each with where it was asked for first."""

    def __call__(self, text: str, where: str = "", pattern: str = _REFERENCE) -> str:
        """Replace every reference; `$$` is a dollar sign."""
        if "$" not in text:
            return text
        return re.sub(pattern, lambda reference: self._value(reference, where), text)

    def braced(self, text: str, where: str = "") -> str:
        """Replace only `${…}`, where a bare dollar sign has a meaning of its own, as in URLs."""
        return self(text, where, _BRACED)

    def _value(self, reference: re.Match[str], where: str) -> str:
        if reference.group() == "$$":
            return "$"
        named = re.fullmatch(_NAMED, reference[reference.lastindex or 1] or "")
        if named is None:
            return reference.group()
        name, default = named.groups()
        value = self.environ.get(name, "")
        if value:
            self.used[name] = value
        elif default is None and name not in self.environ:
            self.unset.setdefault(name, where)
        return value or default or ""


class ResolvedServer(msgspec.Struct, frozen=True):
    """A server as it is started or reached, what must be hidden, and what is missing."""

    server: ServerSpec
    secrets: frozenset[str]
    unset: Mapping[str, str]
    """Variables that are not set, each with where it was asked for first."""


def reference_problem(text: str) -> str | None:
    """What is wrong with the references in a text, or None: for when a suite is loaded."""
    if "${" not in text:
        return None
    for match in re.finditer(_BRACED, text):
        if not re.fullmatch(_NAMED, match.group(1)):
            return f"{show(match.group(), 60)} is neither ${{NAME}} nor ${{NAME:-default}}"
    return None


def resolve(server: ServerSpec, environ: Mapping[str, str]) -> ResolvedServer:
    """Fill in the environment, the headers, the URL and the folder of a server."""
    expand = Expansion(environ)
    env, headers = (
        {key: expand(value, f"server.{name}.{key}") for key, value in table.items()}
        for name, table in (("env", server.env), ("headers", server.headers))
    )
    resolved = replace(
        server,
        env=env,
        headers=headers,
        url=expand.braced(server.url, "server.url"),
        cwd=None if server.cwd is None else expand.braced(server.cwd, "server.cwd"),
    )
    secrets: frozenset[str] = frozenset()
    if expand.used or headers:
        secrets = frozenset((*secrets_of_environment(expand.used), *secrets_of_headers(headers)))
    return ResolvedServer(resolved, secrets, expand.unset)


# -- `{{name}}` in texts -------------------------------------------------------------------------

FIXTURE = "fixture"
NAME = r"[^\W\d][\w.-]*"
"""What a variable may be called; other texts between braces, such as `{{#if}}`, are just texts."""
TEMPLATE = re.compile(rf"\{{\{{({NAME})\}}\}}")
_WHOLE_ANSWER = frozenset({"", "$", "$."})


class CaptureError(ValueError):
    """Why a value could not be captured, as a clause for people."""


def variables_of(fixture: str | None, captured: Mapping[str, str]) -> dict[str, str]:
    """Every name that has a value now. The fixture's path wins over a capture of that name."""
    return {**captured, FIXTURE: fixture} if fixture else dict(captured)


def fill(text: str, variables: Mapping[str, str]) -> str:
    """Replace every known `{{name}}`; unknown ones stay as they are."""
    if "{{" not in text:
        return text
    return TEMPLATE.sub(lambda match: variables.get(match.group(1), match.group()), text)


def fill_json(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace in every text at any depth, but not in the keys of mappings.

    Members come in the order of their names, as Go writes them and so mcp-assert sends them: the
    order should mean nothing to a server, but then it need not differ either.
    """
    if isinstance(value, str):
        return fill(value, variables)
    if isinstance(value, list | tuple):
        return type(value)(fill_json(item, variables) for item in value)
    if isinstance(value, Mapping):
        return {key: fill_json(item, variables) for key, item in sorted(value.items())}
    return value


def fill_declared(value: _T, variables: Mapping[str, str]) -> _T:
    """A value of a suite, filled in wherever its declaration says so.

    What is looked for in an answer is never replaced, only the paths of files.
    """
    changed: dict[str, Any] = {}
    for field in DECLARED[type(value)].fields:
        old = getattr(value, field.name)
        if field.templates == "values":
            changed[field.name] = fill_json(old, variables)
        elif field.templates == "keys":
            changed[field.name] = {fill(key, variables): text for key, text in old.items()}
        elif type(old) in DECLARED:
            changed[field.name] = fill_declared(old, variables)
    return replace(value, **changed)


def fill_server(server: ServerSpec, variables: Mapping[str, str]) -> ServerSpec:
    """Arguments, environment, folder and roots. Do it after the environment was filled in."""
    env = {name: fill(value, variables) for name, value in server.env.items()}
    return replace(fill_declared(server, variables), env=env)  # in the order of the file


def fill_block(block: Block, variables: Mapping[str, str]) -> Block:
    """The block as it is sent, with the paths of its expectations."""
    if isinstance(block, TrajectoryBlock):
        return replace(block, audit_log=fill(block.audit_log, variables))
    return fill_declared(block, variables)


def capture(step: SetupStep, answer: str) -> dict[str, str]:
    """What a setup step keeps of its answer, as texts. Raises CaptureError."""
    from mcptest.suite.matching import quote

    captured = {}
    for name, path in step.capture.items():
        try:
            captured[name] = captured_text(answer, path)
        except CaptureError as error:
            reason = f"capture {quote(name)} from {quote(path)} failed: {error}"
            raise CaptureError(reason) from None
    return captured


def captured_text(answer: str, path: str) -> str:
    """The value at a path of an answer that is one JSON document, as text."""
    from mcptest.suite.jsonpath import PathError, lookup
    from mcptest.suite.matching import compact_json, double_text
    from mcptest.wire.json_text import read_json

    if path in _WHOLE_ANSWER:
        return answer
    document, problems = read_json(answer.encode("utf-8", "surrogatepass"))
    if problems:
        raise CaptureError(f"the response is not JSON: {problems[0].reason}")
    try:
        value = lookup(document, path)
    except PathError as error:
        raise CaptureError(str(error)) from None
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else double_text(value)
    return compact_json(value, sort_keys=True)


# -- Before anything runs ------------------------------------------------------------------------

_SPACED = rf"\{{\{{\s*({NAME})\s*\}}\}}"


def check_templates(
    parts: list[Reading], source: SuiteSource, *, steps: tuple[Reading, ...], has_fixture: bool
) -> None:
    """Check the setup steps in their order, then the rest of a test with all that they capture."""
    known = {FIXTURE} if has_fixture else set()
    used = source.templates
    for step in steps:
        if used:
            _check(step, known, source)
        for name, path in step.get("capture", {}).items():
            if name == FIXTURE:
                step.complain("a capture can't be named fixture", "capture")
            elif not re.fullmatch(NAME, name):
                step.complain(f"{show(name, 60)!r} is not a valid variable name", "capture")
            if path not in _WHOLE_ANSWER:
                from mcptest.suite.jsonpath import path_problem

                if (problem := path_problem(path)) is not None:
                    step.complain(f"capture {show(name, 60)}: {problem}", "capture")
            known.add(name)
    for part in parts if used else ():
        _check(part, known, source)


def check_server_templates(
    server: Reading, source: SuiteSource, *, has_fixture: bool, overridden: bool = False
) -> None:
    """A server is started before anything can be captured.

    `overridden`: --server takes the place of its command, so nothing in that matters.
    """
    if source.templates:
        unused = frozenset({"command", "args"}) if overridden else frozenset()
        _check(server, {FIXTURE} if has_fixture else set(), source, unused)


def _check(
    read: Reading, known: set[str], source: SuiteSource, unused: frozenset[str] = frozenset()
) -> None:
    if source.tidy and source.templates <= known:
        return  # nothing in the whole file could be wrong
    for name, value in read.values.items():
        where = "none" if name in unused else read.declaration.by_name[name].templates
        if where == "keys":
            node = read.node_of(name)
            if isinstance(node, MappingNode):
                for key, _ in node.entries.values():
                    _check_text(key, known, source)
        elif where == "values":
            for scalar in _scalars(read.node_of(name)):
                _check_text(scalar, known, source)
        elif isinstance(value, Reading):
            _check(value, known, source)


def _scalars(node: Node) -> Iterator[ScalarNode]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ScalarNode):
            yield one
        elif isinstance(one, ListNode):
            waiting.extend(one.items)
        else:
            waiting.extend(value for _, value in one.entries.values())


def _check_text(scalar: ScalarNode, known: set[str], source: SuiteSource) -> None:
    if "{{" not in scalar.text:
        return
    for match in re.finditer(_SPACED, scalar.text):
        name, text = match.group(1), match.group()
        if TEMPLATE.fullmatch(text):
            if name in known:
                continue
            if name == FIXTURE:
                message, hint = "{{fixture}} has no value", "pass --fixture DIR"
            else:
                message = f"{{{{{show(name, 60)}}}}} is not captured before it is used here"
                captured = sorted(known - {FIXTURE})
                only = "capture it in an earlier setup step"
                hint = did_you_mean(name, captured) if captured else only
        elif name in known or name == FIXTURE:
            message = f"{show(text, 60)} is not replaced"
            hint = f"write {{{{{name}}}}}, without spaces"
        else:
            continue
        # Point at the variable itself where it can be found in the line.
        at = (source.line(scalar.line) or "").find(text, scalar.column - 1)
        column, width = (at + 1, len(text)) if at >= 0 else (scalar.column, scalar.width)
        source.report(message, scalar.line, column, hint=hint, width=width)
