"""Any stored file: one report, or a fleet, which is several of them in one."""

from __future__ import annotations

import msgspec

from mcptest.model.fleet import FLEET_FORMAT
from mcptest.model.show import show
from mcptest.report.fleet_json import read_fleet
from mcptest.report.fleet_stored import stored_of_fleet
from mcptest.report.results_json import decode
from mcptest.report.stored import Stored, read_stored


class _Head(msgspec.Struct):
    format: str = ""


def read_any(data: bytes, file: str) -> list[Stored]:
    """Everything that a file holds. UsageError, with the place, for no stored report."""
    text = data.removeprefix(b"\xef\xbb\xbf")
    if text.lstrip()[:1] == b"{":
        name = show(file, 300)
        if decode(text, _Head, name).format == FLEET_FORMAT:
            return stored_of_fleet(read_fleet(text, name), file)
    return [read_stored(data, file)]
