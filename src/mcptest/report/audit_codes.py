"""The codes of an audit: mcp-assert's for what it tells apart, and ours in the same row."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from mcptest.model.audit import Health
from mcptest.report.indented_json import indented_json
from mcptest.report.terminal import Style

_WIDTH = 96


class AuditCode(msgspec.Struct, frozen=True):
    """One code of `error_code` in the JSON of `mcptest audit`."""

    code: str
    health: Health
    title: str
    why: str
    fix: str


AUDIT_CODES = (
    AuditCode(
        "E000",
        Health.HEALTHY,
        "the item answered",
        "A call with input that fits the schema was answered with a result. A result that says "
        "isError is an answer too: the tool handled what it was given. Whether it gave what was "
        "asked for is `worked`, and the score is the share that did.",
        "Nothing is to be done.",
    ),
    AuditCode(
        "E201",
        Health.CRASHED,
        "the call crashed",
        "The server ended, or answered with the JSON-RPC error -32603 (internal error), although "
        "the input fits the schema of the tool. An agent that makes this call loses the server or "
        "learns nothing from the error.",
        "Handle the failure in the tool, and answer with a result that says isError and what is "
        "wrong. The report shows the input, the last lines of stderr, and the command that makes "
        "this call again.",
    ),
    AuditCode(
        "E202",
        Health.TIMED_OUT,
        "the call was not answered in time",
        "No answer came within --timeout. An agent waits as long, and then knows nothing.",
        "Bound what the tool waits for and answer with isError, or send progress and offer a task "
        "for what takes long; --timeout sets another limit.",
    ),
    AuditCode(
        "E203",
        Health.REFUSED,
        "the call was refused",
        "The answer is a JSON-RPC error other than -32603, although the input fits the schema: the "
        "schema promises more than the tool accepts, or what the tool needs is not there. "
        "mcp-assert calls this a crash.",
        "Say in the schema what is accepted, and answer what only the tool can know with isError.",
    ),
    AuditCode(
        "E204",
        Health.PROTOCOL,
        "the answer breaks the protocol",
        "What came is no result of that method, or no message at all. Clients that check what they "
        "are sent fail on it.",
        "mcptest compliance run names the rule that is broken, with the bytes.",
    ),
)
CODE_OF = {one.health: one.code for one in AUDIT_CODES}


def find_audit_code(name: str) -> AuditCode | None:
    """The code of this name, in any case."""
    wanted = name.strip().upper()
    return next((one for one in AUDIT_CODES if one.code == wanted), None)


def audit_code_page(code: AuditCode, style: Style) -> Iterator[str]:
    yield f"{style.paint(code.code, 'bold')}  {code.title}"
    yield ""
    yield from textwrap.wrap(code.why, _WIDTH)
    yield ""
    yield style.paint("To fix it:", "bold")
    yield from (f"  {line}" for line in textwrap.wrap(code.fix, _WIDTH - 2))
    yield ""
    facts = {"status": code.health.value, "found by": "mcptest audit; error_code in its JSON"}
    for label, value in facts.items():
        yield f"{style.paint(f'{label:<14}', 'dim')} {value}"


def audit_code_as_json(code: AuditCode) -> bytes:
    value = {
        "schema": "mcptest.audit-code/1",
        "code": code.code,
        "title": code.title,
        "status": code.health.value,
        "why": code.why,
        "fix": code.fix,
    }
    return indented_json(value)
