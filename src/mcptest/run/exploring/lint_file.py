"""What was listed once, from a file: a list's JSON, a whole answer, or a capture in either form."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from mcptest.model.capture import Frame
from mcptest.model.errors import UsageError
from mcptest.model.message import ABSENT, Kind
from mcptest.model.show import show
from mcptest.transport.capture_file import open_capture
from mcptest.transport.input_file import LARGEST_INPUT, read_input, unreadable
from mcptest.wire.envelope import decode
from mcptest.wire.jsontext import read_json
from mcptest.wire.session_source import SessionSource

LISTS = ("tools", "prompts", "resources", "resourceTemplates")
_HINT = (
    "it takes the answer to tools/list, an array of tools, or a capture "
    "(mcptest record --server S --out FILE)"
)


class Listed(msgspec.Struct):
    """What a file holds, list by list."""

    server: str = ""
    version: str = ""
    lists: dict[str, list[Any]] = {}
    notes: tuple[str, ...] = ()

    def add(self, fields: Mapping[str, Any], *, anew: bool = True) -> None:
        """Take the lists of one answer: from the first page on, or one more page."""
        for name in LISTS:
            items = fields.get(name)
            if isinstance(items, list):
                self.lists[name] = [*([] if anew else self.lists.get(name, [])), *items]
        info = fields.get("serverInfo")
        if isinstance(info, dict):
            self.server = str(info.get("name") or self.server)
            self.version = str(info.get("version") or self.version)


def listed_in(path: Path) -> Listed:
    """Raises UsageError when the file can't be read, or nothing is listed in it."""
    listed = Listed(server=path.name)
    value = _whole_value(path)
    if isinstance(value, list) and not any(_is_session(one) for one in value):
        listed.add({"tools": value})
    elif isinstance(value, dict) and not _is_session(value):
        inner = value.get("result")
        listed.add(inner if isinstance(inner, dict) else value)
    if not listed.lists:
        _add_capture(path, listed)
    if not listed.lists:
        raise UsageError(f"{show(str(path))}: no list of tools, prompts or resources", hint=_HINT)
    return listed


def _is_session(value: Any) -> bool:
    return isinstance(value, dict) and ("exchanges" in value or "kind" in value)


def _whole_value(path: Path) -> Any:
    """The file as one JSON value; ABSENT when it is something else, such as lines of a capture."""
    try:
        if path.stat().st_size > LARGEST_INPUT:
            return ABSENT  # a capture is streamed
    except OSError as error:
        raise unreadable(path, "", error) from None
    data = read_input(path)
    value, _ = read_json(data.removeprefix(b"\xef\xbb\xbf"))
    return value


def _add_capture(path: Path, listed: Listed) -> None:
    """The first session that lists something; what the others list is said to be left out."""
    left_out = 0
    try:
        for source in open_capture(str(path)):
            if listed.lists:
                left_out += 1
            else:
                listed.server = source.label or listed.server
                _add_session(source, listed)
    except UsageError as error:
        raise UsageError(error.message, hint=_HINT) from None
    if left_out:
        listed.notes = (f"{left_out} more sessions of the capture were not looked at",)


def _add_session(source: SessionSource, listed: Listed) -> None:
    pages: dict[str, bool] = {}
    for _, record in source.records:
        if type(record) is not Frame:
            continue
        message = decode(record.raw)
        if message.kind is Kind.REQUEST and record.sender == "client":
            pages[repr(message.id)] = "cursor" in message.params
        elif record.sender == "server" and isinstance(message.result, dict):
            listed.add(message.result, anew=not pages.get(repr(message.id), False))
