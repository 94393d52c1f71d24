"""One way from a report to JSON and back: what is always written is what its schema requires."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, UnsetType

from mcptest.core.errors import UsageError
from mcptest.core.results import always, derive
from mcptest.report.codec import as_json, decode, json_schema
from mcptest.report.head import ReportHead


class Inner(msgspec.Struct, frozen=True):
    name: str = ""


class Sparse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    detail: str = always("")
    notes: tuple[str, ...] = always((), name="remarks")
    findings: tuple[str, ...] = ()
    arguments: Any = UNSET


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[Sparse, ...] = ()
    inner: Inner = Inner()
    counts: dict[str, int] = {}
    reason: str | None = None
    fix: str | UnsetType = UNSET


class Counted(ReportHead, frozen=True, kw_only=True, tag="mcptest.counted/1"):
    names: tuple[str, ...] = ()
    total: int = 0

    def __post_init__(self) -> None:
        ReportHead.__post_init__(self)
        derive(self, total=len(self.names))


@pytest.mark.parametrize("value", [Sparse(name="a"), Whole(), Inner(), Counted()])
def test_the_schema_requires_just_what_is_written_of_a_value_with_nothing_in_it(value: Any) -> None:
    kind = type(value)
    required = json_schema(kind)["$defs"][kind.__name__]["required"]
    assert set(required) == set(json.loads(as_json(value)))


def test_what_is_inside_is_required_in_its_own_way() -> None:
    definitions = json_schema(Whole)["$defs"]
    assert set(definitions["Sparse"]["required"]) == {"name", "detail", "remarks"}
    assert definitions["Inner"]["required"] == ["name"]


def test_what_follows_from_the_rest_is_worked_out_again_when_a_file_is_read() -> None:
    stored = json.dumps({"format": "mcptest.counted/1", "names": ["a", "b"], "total": 9})
    read = decode(stored.encode(), Counted, "x.json")
    assert read.total == 2
    assert json.loads(as_json(read))["total"] == 2


def test_a_server_without_a_name_is_called_as_it_was_reached() -> None:
    written = json.loads(as_json(Counted(server="npx x")))
    assert (written["server"], written["peer"]) == ("npx x", "npx x")


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format"):
        decode(b'{"format": "mcptest.other/1"}', Counted, "x.json")


def test_half_a_surrogate_pair_and_controls_are_written_so_that_they_can_be_read() -> None:
    written = as_json(Counted(names=("\ud800", "\u202e<")))
    assert b"\\u202e" in written
    assert decode(written, Counted, "x.json").names == ("\\ud800", "\u202e<")
