"""What bytes are that are no message, in a clause for people."""

from __future__ import annotations

import pytest

from mcptest.wire.diagnosis import diagnose
from tests.rogues.malformed import FAULTS, FRAMINGS, RESULTS, plain
from tests.rogues.verdicts import NONE, ON_STDIO

ANSWER = {"jsonrpc": "2.0", "id": 2, "result": RESULTS["tools/call"]}
TEXT = plain(ANSWER)
RULE = "; MCP over stdio sends each message on its own line"
BY_ID = {"string-id", "fraction-id", "other-id", "no-id", "null-id"}
OTHERWISE = {*BY_ID, "too-deep", "empty-batch"}
"""What the reader of messages explains by itself."""
KNOWN = [name for name, row in ON_STDIO.items() if row.verdict == NONE and name not in OTHERWISE]


def lines_of(name: str) -> tuple[list[bytes], bytes]:
    """The lines of an answer, and what stands behind the last newline."""
    text = FAULTS.get(name, plain)(ANSWER)
    *lines, rest = FRAMINGS.get(name, lambda text: text + b"\n")(text).split(b"\n")
    return lines, rest


@pytest.mark.parametrize("name", KNOWN)
def test_what_came_is_recognised(name: str) -> None:
    lines, unfinished = lines_of(name)
    assert ON_STDIO[name].words in diagnose(lines, unfinished)


@pytest.mark.parametrize(
    "line",
    [
        b"listening on stdio",
        b'{"level":"info","msg":"ready"}',
        b"",
        b"\0",
        b"{",
        b'{"a":1,}',
        b'{"level":"info","msg":"started',
    ],
)
def test_noise_is_not_taken_for_more_than_it_is(line: bytes) -> None:
    assert diagnose([line]) == ""


def test_half_a_line_may_still_become_a_message() -> None:
    assert diagnose([], TEXT[:-10]) == ""
    assert diagnose([], TEXT) == "it is a message without a newline at its end"


@pytest.mark.parametrize(
    "piece", [b"log: " + TEXT, TEXT + TEXT, TEXT + b" // sent", b"data: " + TEXT]
)
def test_the_rule_about_lines_is_told_where_there_are_lines(piece: bytes) -> None:
    assert diagnose([piece]) == diagnose([piece], lines=False) + RULE


@pytest.mark.parametrize("place", [0, 10, len(TEXT)])
def test_a_nul_byte_makes_no_utf_16(place: int) -> None:
    piece = TEXT[:place] + b"\0" + TEXT[place:]
    assert "UTF-16" not in diagnose([piece])
