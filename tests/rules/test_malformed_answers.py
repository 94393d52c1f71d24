"""The rule that an answer breaks whose form is wrong: for commands that judge whole sessions."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.core.capture import Exited
from mcptest.core.verdict import Outcome
from tests.rogues import malformed
from tests.rogues.verdicts import ON_STDIO
from tests.rules.captures import ask, complete, discover, full, handshake, modern, raw
from tests.rules.test_judging import verdict
from tests.rules.test_what_is_a_message import failing

RULES = {name: row.rule for name, row in ON_STDIO.items()}
WITHOUT_A_LINE = {"no-newline", "carriage-return-only"}
"""Nothing of these is a line yet, and half a line breaks no rule."""
CALL = {"name": "echo", "arguments": {}}


def lines_of(fault: str, result: dict[str, Any]) -> list[bytes]:
    """What the server writes in answer to request 2."""
    text = malformed.FAULTS.get(fault, malformed.plain)(
        {"jsonrpc": "2.0", "id": 2, "result": result}
    )
    written = malformed.FRAMINGS.get(fault, lambda text: text + b"\n")(text)
    if fault in malformed.LATE:
        written += text + b"\n"
    return written.removesuffix(b"\n").split(b"\n")


@pytest.mark.parametrize("fault", [name for name in RULES if name not in WITHOUT_A_LINE])
@pytest.mark.parametrize("stateless", [False, True], ids=["handshake", "stateless"])
def test_an_answer_whose_form_is_wrong_breaks_its_rule(fault: str, stateless: bool) -> None:
    declared = {"tools": {}}
    result: dict[str, Any] = dict(malformed.RESULTS["tools/call"])
    result = complete(**result) if stateless else result
    begin = discover(declared) if stateless else handshake(server=declared)
    asked = modern(2, "tools/call", CALL) if stateless else ask(2, "tools/call", CALL)
    said = [raw("server", line) for line in lines_of(fault, result)]
    found = failing(full(begin, asked, said), only=None)
    if RULES[fault]:
        assert RULES[fault] in found, found
    else:
        assert not found


def test_the_rule_names_what_the_bytes_are() -> None:
    said = raw("server", lines_of("utf-16-le", {})[0])
    found = failing(full(handshake(server={"tools": {}}), ask(2, "tools/call", CALL), said))
    assert "it is UTF-16; MCP messages are UTF-8" in found["MSG-002"][0].message


@pytest.mark.parametrize("fault", ["no-id", "null-id"])
def test_a_result_without_an_id_may_answer_the_request_that_waits(fault: str) -> None:
    """It may be that what it lacks is the id: neither a violation of MSG-008 nor a pass."""
    said = [raw("server", line) for line in lines_of(fault, {"content": []})]
    begin = handshake(server={"tools": {}})
    found = verdict("MSG-008", full(begin, ask(2, "tools/call", CALL), said))
    assert (found.outcome, found.doubtful) == (Outcome.INCONCLUSIVE, True)
    assert "or an open request" in found.reason


def test_a_doubt_of_one_session_is_kept_where_another_session_passes() -> None:
    said = [raw("server", line) for line in lines_of("no-id", {"content": []})]
    begin = handshake(server={"tools": {}})
    doubtful = [*begin, ask(2, "tools/call", CALL), *said, Exited(code=0)]
    found = verdict("MSG-008", full(doubtful, begin))
    assert (found.outcome, found.doubtful) == (Outcome.INCONCLUSIVE, True)
