"""A tool whose input schema uses JSON Schema 2020-12: nothing of it may get lost on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count

import msgspec

from mcptest.clients.scenario import Row
from mcptest.model.conformance import Status
from mcptest.model.show import show
from mcptest.peer.pagination import EndlessPages, walk_pages
from mcptest.run.conformance.scenarios.judges import found, listed, sep
from mcptest.run.conformance.scenarios.scenario import (
    PENDING,
    SINCE_2025_11_25,
    Judge,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Heard, Obj, Scene
from mcptest.run.conformance.scenarios.stage import Stage

TOOL = "json_schema_2020_12_tool"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _walk(stage: Stage) -> None:
    """Every page of the list, until the tool was seen."""
    numbers = count(1)
    pages = walk_pages(
        "tools/list",
        lambda params: stage.ask(f"page {next(numbers)}", "tools/list", params),
        lambda heard: heard.result,
        seconds=stage.site.order.timeout,
    )
    with contextlib.suppress(EndlessPages):  # the tool was not on any of them
        for heard in pages:
            if _tool_on(heard, stage.fixture(TOOL)) is not None:
                return


def _tool_on(heard: Heard, name: str) -> Obj | None:
    tools = listed(heard.result.get("tools"))
    return next((tool for tool in tools if tool.get("name") == name), None)


def _last(scene: Scene) -> Heard:
    return scene.heard[max(scene.heard, key=lambda label: scene.heard[label].begins)]


def _schema(scene: Scene) -> tuple[Obj, str]:
    """The schema of the tool, or why there is none."""
    if not scene.heard:
        return {}, "tools/list was not asked"
    heard = _last(scene)
    if heard.without_result:
        return {}, heard.without_result
    tool = _tool_on(heard, scene.fixture(TOOL))
    if tool is None:
        return {}, f"the tool {scene.fixture(TOOL)} is not listed"
    schema = tool.get("inputSchema")
    return (schema, "") if isinstance(schema, dict) else ({}, "inputSchema is no object")


def _found(scene: Scene) -> Iterator[Row]:
    why = _schema(scene)[1]
    yield found([why] if why else [], _last(scene) if scene.heard else None)


def _keeps(problems: Callable[[Obj], Iterator[str]], *, newer: bool = False) -> Judge:
    """`newer`: only 2026-07-28 asks for it, before that its absence is no fault."""

    def judge(scene: Scene) -> Iterator[Row]:
        schema, why = _schema(scene)
        row = found([why] if why else problems(schema), _last(scene) if scene.heard else None)
        if newer and not scene.is_stateless and row.status is Status.FAILURE and not why:
            row = msgspec.structs.replace(row, status=Status.SKIPPED)
        yield row

    return judge


def _dialect(schema: Obj) -> Iterator[str]:
    if schema.get("$schema") != DIALECT:
        yield f"$schema is {show(repr(schema.get('$schema')), 120)}, not {DIALECT!r}"


def _definitions(schema: Obj) -> Iterator[str]:
    definitions = schema.get("$defs")
    if not isinstance(definitions, dict) or "address" not in definitions:
        yield "$defs has no address"


def _closed(schema: Obj) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        given = show(repr(schema.get("additionalProperties")), 60)
        yield f"additionalProperties is {given}, not false"


def _composition(schema: Obj) -> Iterator[str]:
    parts = listed(schema.get("allOf"))
    if not any(isinstance(part.get("anyOf"), list) for part in parts):
        yield "allOf with an anyOf in it is missing"


def _conditions(schema: Obj) -> Iterator[str]:
    yield from (f"{word} is missing" for word in ("if", "then", "else") if word not in schema)


def _anchor(schema: Obj) -> Iterator[str]:
    definitions = schema.get("$defs")
    address = definitions.get("address") if isinstance(definitions, dict) else None
    if not isinstance(address, dict) or "$anchor" not in address:
        yield "$defs.address has no $anchor"


def _check(identifier: str, name: str, what: str, judge: Judge, number: int) -> ServerCheck:
    return ServerCheck(
        id=identifier, name=name, description=what, judge=judge, references=sep(number)
    )


SCENARIOS = (
    ServerScenario(
        name="json-schema-2020-12",
        title="Keywords of JSON Schema 2020-12 stay",
        description=f"`tools/list` shows the fixture `{TOOL}` with its whole input schema: "
        "`$schema`, `$defs` with `address`, `additionalProperties: false`; and from 2026-07-28 on "
        "`allOf` with `anyOf`, `if`, `then`, `else` and an `$anchor` in `$defs.address`.",
        revisions=SINCE_2025_11_25,
        suites=PENDING,
        script=_walk,
        needs=Needs(capabilities=("tools",), tools=(TOOL,)),
        checks=(
            _check(
                "json-schema-2020-12-tool-found",
                "JsonSchema2020_12ToolFound",
                "the tool is listed",
                _found,
                1613,
            ),
            _check(
                "json-schema-2020-12-$schema",
                "JsonSchema2020_12$Schema",
                "$schema stays as it is",
                _keeps(_dialect),
                1613,
            ),
            _check(
                "json-schema-2020-12-$defs",
                "JsonSchema2020_12$Defs",
                "$defs stays as it is",
                _keeps(_definitions),
                1613,
            ),
            _check(
                "json-schema-2020-12-additionalProperties",
                "JsonSchema2020_12AdditionalProperties",
                "additionalProperties stays as it is",
                _keeps(_closed),
                1613,
            ),
            _check(
                "sep-2106-composition-keywords-preserved",
                "JsonSchema2020_12CompositionKeywords",
                "allOf and anyOf stay as they are",
                _keeps(_composition, newer=True),
                2106,
            ),
            _check(
                "sep-2106-conditional-keywords-preserved",
                "JsonSchema2020_12ConditionalKeywords",
                "if, then and else stay as they are",
                _keeps(_conditions, newer=True),
                2106,
            ),
            _check(
                "sep-2106-anchor-keyword-preserved",
                "JsonSchema2020_12AnchorKeyword",
                "$anchor stays as it is",
                _keeps(_anchor, newer=True),
                2106,
            ),
        ),
    ),
)
