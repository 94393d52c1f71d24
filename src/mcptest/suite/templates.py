"""`{{name}}` in texts: the fixture's path and what setup steps captured. Pure.

All names are replaced in one pass, so a captured value is data: braces inside of it mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mcptest.suite.go_format import double_text, quote
from mcptest.suite.model import (
    Block,
    CompletionBlock,
    Expect,
    LoggingBlock,
    NotificationsBlock,
    PromptsBlock,
    ResourcesBlock,
    SamplingBlock,
    ServerSpec,
    SetupStep,
    ToolBlock,
    TrajectoryBlock,
)

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


def fill_in(text: str, fixture: str | None, captured: Mapping[str, str]) -> str:
    """`fill` for a single text."""
    return fill(text, variables_of(fixture, captured))


def fill_json(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace in every text at any depth, but not in the keys of mappings.

    Members come in the order of their names, as Go writes them and so mcp-assert sends them: the
    order should mean nothing to a server, but then it need not differ either.
    """
    if isinstance(value, str):
        return fill(value, variables)
    if isinstance(value, list):
        return [fill_json(item, variables) for item in value]
    if isinstance(value, Mapping):
        return {key: fill_json(item, variables) for key, item in sorted(value.items())}
    return value


def fill_step(step: SetupStep, variables: Mapping[str, str]) -> SetupStep:
    return replace(step, args=fill_json(step.args, variables))


def fill_server(server: ServerSpec, variables: Mapping[str, str]) -> ServerSpec:
    """Arguments, environment, folder and roots. Do it after the environment was filled in."""
    offered = server.client_capabilities
    if offered is not None:
        offered = replace(offered, roots=_fill_all(offered.roots, variables))
    return replace(
        server,
        args=_fill_all(server.args, variables),
        env={name: fill(value, variables) for name, value in server.env.items()},
        cwd=None if server.cwd is None else fill(server.cwd, variables),
        client_capabilities=offered,
    )


def fill_expect(expect: Expect, variables: Mapping[str, str]) -> Expect:
    """The paths of files. What is looked for in an answer is never replaced."""
    return replace(
        expect,
        file_contains=_fill_keys(expect.file_contains, variables),
        file_not_contains=_fill_keys(expect.file_not_contains, variables),
        file_not_exists=_fill_all(expect.file_not_exists, variables),
        file_unchanged=_fill_all(expect.file_unchanged, variables),
    )


def fill_block(block: Block, variables: Mapping[str, str]) -> Block:
    """The block as it is sent, with the paths of its expectations."""
    if isinstance(block, TrajectoryBlock):
        return replace(block, audit_log=fill(block.audit_log, variables))
    if isinstance(block, LoggingBlock | NotificationsBlock):
        return replace(block, args=fill_json(block.args, variables))
    expect = fill_expect(block.expect, variables)
    if isinstance(block, ToolBlock | SamplingBlock):
        return replace(block, args=fill_json(block.args, variables), expect=expect)
    if isinstance(block, CompletionBlock):
        return replace(
            block,
            ref=fill_json(block.ref, variables),
            argument=fill_json(block.argument, variables),
            expect=expect,
        )
    return _fill_request(block, variables, expect)


def _fill_request(
    block: ResourcesBlock | PromptsBlock, variables: Mapping[str, str], expect: Expect
) -> Block:
    cursor = _fill_maybe(block.cursor, variables)
    if isinstance(block, PromptsBlock):
        return replace(
            block,
            cursor=cursor,
            get=_fill_maybe(block.get, variables),
            arguments=fill_json(block.arguments, variables),
            expect=expect,
        )
    return replace(
        block,
        cursor=cursor,
        read=_fill_maybe(block.read, variables),
        subscribe=_fill_maybe(block.subscribe, variables),
        unsubscribe=_fill_maybe(block.unsubscribe, variables),
        expect=expect,
    )


def _fill_maybe(text: str | None, variables: Mapping[str, str]) -> str | None:
    return None if text is None else fill(text, variables)


def _fill_all(texts: tuple[str, ...], variables: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(fill(text, variables) for text in texts)


def _fill_keys(table: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    return {fill(key, variables): value for key, value in table.items()}


def capture(step: SetupStep, answer: str) -> dict[str, str]:
    """What a setup step keeps of its answer, as texts. Raises CaptureError."""
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
    from mcptest.wire.jsontext import read_json

    if path in _WHOLE_ANSWER:
        return answer
    document, problems = read_json(answer.encode("utf-8", "surrogatepass"))
    if problems:
        raise CaptureError(f"the answer is not JSON: {problems[0].reason}")
    try:
        return _as_text(lookup(document, path))
    except PathError as error:
        raise CaptureError(str(error)) from None


def path_is_whole_answer(path: str) -> bool:
    return path in _WHOLE_ANSWER


def _as_text(value: Any) -> str:
    from mcptest.suite.text_under_test import compact_json

    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else double_text(value)
    return compact_json(value, sort_keys=True)
