"""docs/suite-format.md shows every declared field, and its examples are real.

After a change on purpose: `python -m tests.suite.test_suite_docs` writes the tables anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcptest.suite import model as d
from mcptest.suite.editor_schema import ALL
from mcptest.suite.fields import (
    Choice,
    Declaration,
    Duration,
    Expectations,
    Field,
    FieldKind,
    Flag,
    JsonSchema,
    JsonTable,
    LaneBlock,
    ListOf,
    MatcherField,
    ObjectOf,
    Reserved,
    Texts,
    TextTable,
    Whole,
)
from mcptest.suite.load import Given
from tests.support.suites import load_text, problems_in, understood

PAGE = Path(__file__).parents[2] / "docs" / "suite-format.md"
TABLES = re.compile(r"(?<=<!-- fields -->\n).*?(?=<!-- end of fields -->)", re.DOTALL)
EXAMPLE = re.compile(r"^```yaml\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PROBLEM = re.compile(r"<!-- problem: misspelled -->\n```text\n(.*?)```", re.DOTALL)

WORDS: dict[type[FieldKind], str] = {
    Flag: "true or false",
    Whole: "whole number",
    Duration: "duration",
    Texts: "list of strings",
    TextTable: "texts by name",
    JsonTable: "values by name",
    JsonSchema: "JSON Schema",
    MatcherField: "one matcher",
}


def takes(kind: FieldKind) -> str:
    if isinstance(kind, Choice):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, ObjectOf):
        short = "text, or " if kind.short_for else ""
        return f"{short}[{kind.declaration.name}](#{anchor(kind.declaration)})"
    if isinstance(kind, LaneBlock):
        whole = f"[{kind.declaration.name}](#{anchor(kind.declaration)})"
        listed = kind.declaration.by_name.get(kind.list_of)
        return whole if listed is None else f"{whole}, or {takes(listed.kind)}"
    if isinstance(kind, ListOf):
        return f"list of [{kind.declaration.name}](#{anchor(kind.declaration)})"
    if isinstance(kind, Expectations):
        return f"[expect](#{anchor(kind.declaration)}), or list of [check](#{anchor(kind.row)})"
    return WORDS.get(type(kind), "text")


def anchor(declaration: Declaration) -> str:
    return re.sub(r"[^\w-]", "", declaration.name.replace(" ", "-"))


def marks(field: Field) -> str:
    words = [*(["required"] if field.required else []), *(["+"] if field.ours else [])]
    if field.templates != "none":
        words.append("`{{}}`" if field.templates == "values" else "`{{}}` in keys")
    return ", ".join(words)


def table(declaration: Declaration) -> Iterator[str]:
    yield f"### {declaration.name}\n\n{declaration.doc}\n"
    yield "| field | takes | | meaning |\n|---|---|---|---|"
    for field in declaration.fields:
        if not isinstance(field.kind, Reserved):
            yield f"| `{field.name}` | {takes(field.kind)} | {marks(field)} | {field.doc} |"
    if any(isinstance(field.kind, Reserved) for field in declaration.fields):
        yield f"\nReserved for later versions: {', '.join(f'`{name}`' for name in d.RESERVED)}."
    yield ""


def tables() -> str:
    return "\n" + "\n".join(line for one in ALL for line in table(one)) + "\n"


def test_the_tables_of_fields_are_fresh() -> None:
    found = TABLES.search(PAGE.read_text(encoding="utf-8"))

    assert found is not None
    assert found.group() == tables(), "python -m tests.suite.test_suite_docs writes them anew"


@pytest.mark.parametrize("example", EXAMPLE.findall(PAGE.read_text(encoding="utf-8")))
def test_every_example_is_a_suite(example: str) -> None:
    assert understood(example, Given(fixture=True))


def test_the_mistake_is_told_as_the_page_shows_it() -> None:
    shown = PROBLEM.search(PAGE.read_text(encoding="utf-8"))
    suite = 'server: {command: s}\nassert:\n  tool: t\n  expect:\n    contians: ["x"]\n'

    assert shown is not None
    assert problems_in(suite, "evals/notes.yaml") + "\n" == shown.group(1)


def test_keys_of_arguments_become_their_text() -> None:
    (test,), _ = load_text(
        b"server: {command: s}\nassert: {tool: t, args: {1: {true: ~}}, expect: {not_error: yes}}",
        "x.yaml",
    )

    assert getattr(test.block, "args", None) == {"1": {"true": None}}


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLES.sub(lambda _: tables(), page), encoding="utf-8")
