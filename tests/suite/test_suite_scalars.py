"""What scalars mean, by the rules that suites of mcp-assert were written for."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.suite.reading import (
    ScalarError,
    ScalarNode,
    json_value,
    read_nodes,
    text_value,
    truth_value,
)


def scalar(text: str) -> ScalarNode:
    node = read_nodes(text)
    assert isinstance(node, ScalarNode)
    return node


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("tRUE", "tRUE"),
        ("'true'", "true"),
        ("null", None),
        ("~", None),
        ("'null'", "null"),
        ("'~'", "~"),
        ('""', ""),
        ("0", 0),
        ("42", 42),
        ("-42", -42),
        ("+5", 5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("0o17", 15),
        ("017", 15),
        ("-017", -15),
        ("08", 8),
        ("0b101", 5),
        ("0x", "0x"),
        ("0o8", "0o8"),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.50", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("1e21", 1e21),
        ("-1.5e-7", -1.5e-7),
        ("1:30", "1:30"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("12345678901234567890", 12345678901234567890),
        ("9" * 100, int("9" * 100)),
        ("'42'", "42"),
        ("1.2.3", "1.2.3"),
        ("-x", "-x"),
        ("+", "+"),
        (".", "."),
        ("1 2", "1 2"),
        ("_1", "_1"),
        ("._5", "._5"),
        (".5_5", 0.55),
        (".5_", ".5_"),
        ("1__0", 10),
        ("0x_1F", 31),
        ("0b2", "0b2"),
        ("1e", "1e"),
        ("--1", "--1"),
        ("!!str 42", "42"),
        ("!!int '42'", 42),
        ("!!float 1", 1),
        ("!!bool yes", True),
        ("!!null ''", None),
        ("!!binary aGVsbG8=", "hello"),
        ("!!timestamp 2024-01-01", "2024-01-01"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_where_anything_may_stand(written: str, value: Any) -> None:
    found = json_value(scalar(written))

    assert found == value
    assert type(found) is type(value)


def test_a_negative_zero_stays_one() -> None:
    assert str(json_value(scalar("-0.0"))) == "-0.0"


@pytest.mark.parametrize(
    "written",
    [
        ".inf", "-.inf", "+.Inf", ".nan", ".NaN", "1e400", "-1e999", "9" * 2_000, "!!int abc",
        "!!float x", "!!bool maybe", "!!null x", "!!binary '*'", "!!binary //8=", "!mine x",
        "!!set x", "!!python/none x",
    ],
)  # fmt: skip
def test_what_json_can_not_hold_or_nobody_defined_is_refused(written: str) -> None:
    with pytest.raises(ScalarError):
        json_value(scalar(written))


@pytest.mark.parametrize("written", ["true", "TRUE", "yes", "Yes", "on", "ON", "y", "!!bool yes"])
def test_truth_where_it_is_asked_for(written: str) -> None:
    assert truth_value(scalar(written)) is True


@pytest.mark.parametrize("written", ["false", "no", "NO", "off", "n"])
def test_falsehood_where_it_is_asked_for(written: str) -> None:
    assert truth_value(scalar(written)) is False


@pytest.mark.parametrize("written", ["'true'", "'yes'", "1", "0", "maybe", "~"])
def test_other_scalars_are_no_truth_values(written: str) -> None:
    assert truth_value(scalar(written)) is None


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("42", "42"),
        ("1.50", "1.50"),
        ("true", "true"),
        ("017", "017"),
        ("1e400", "1e400"),
        ("2024-01-01", "2024-01-01"),
        ("'quoted'", "quoted"),
        ("!!binary aGk=", "hi"),
        ("!!int 5", "5"),
    ],
)
def test_a_text_is_taken_as_it_is_written(written: str, text: str) -> None:
    assert text_value(scalar(written)) == text


def test_an_unknown_tag_is_refused_on_a_text_too() -> None:
    with pytest.raises(ScalarError):
        text_value(scalar("!mine x"))


@pytest.mark.parametrize(("written", "nothing"), [("~", True), ("'~'", False), ("x", False)])
def test_nothing_is_only_what_is_not_quoted(written: str, nothing: bool) -> None:
    assert scalar(written).is_nothing is nothing
