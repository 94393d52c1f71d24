"""Answers that come late, twice, to nobody, huge, broken or not at all: the client goes on.

Each scenario has one tool that goes wrong and one, `afterwards`, that works. What shows that a
client has survived is that it calls the second one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcptest.clients.rows import bad, good, missing, reference, shown
from mcptest.clients.scenario import EVERY_REVISION, WITH_HANDSHAKE, Check, Judge, Row, Scenario
from mcptest.clients.seen import Seen
from mcptest.model.revision import Revision
from mcptest.peer.scripted.conforming import Conforming
from mcptest.peer.scripted.script import Call, Obj

OURS = frozenset({"ours", "resilience"})
AFTERWARDS = "afterwards"
HUGE = 8 * 1024 * 1024
DEEP = 200
_ODD_TEXT = "a\x00b\x1b[31mc\u202edcba\u202c\U0001f600\ufeff</script>&amp;\\u0000 ${HOME} {{x}}"


def tool(name: str, about: str) -> Obj:
    schema = {"type": "object", "properties": {}}
    return {"name": name, "description": about, "inputSchema": schema}


class GoingWrong(Conforming):
    """One tool goes wrong; the other works."""

    wrong = "goes_wrong"

    def __init__(self) -> None:
        super().__init__()
        self.tools = (tool(self.wrong, "Goes wrong"), tool(AFTERWARDS, "Works"))

    def call_tool(self, call: Call, name: str, arguments: Obj) -> None:
        if name == self.wrong:
            self.go_wrong(call)
        elif name == AFTERWARDS:
            self.text(call, "all is well")
        else:
            super().call_tool(call, name, arguments)

    def go_wrong(self, call: Call) -> None:
        raise NotImplementedError


def both_called(wrong: str = GoingWrong.wrong) -> Obj:
    return {"toolCalls": [{"name": wrong, "arguments": {}}, {"name": AFTERWARDS, "arguments": {}}]}


def goes_on(wrong: str = GoingWrong.wrong) -> Judge:
    """After the call that went wrong came the next one."""

    def judge(seen: Seen) -> Iterator[Row]:
        first = seen.calls(wrong)
        after = [one for one in seen.calls(AFTERWARDS) if first and one.place > first[0].place]
        if not first:
            yield missing(f"the client did not call {wrong}")
        elif not after:
            yield bad(f"after the call of {wrong} the client did not call {AFTERWARDS}", first[0])
        else:
            yield good(after[0])

    return judge


def asked_once(wrong: str = GoingWrong.wrong) -> Judge:
    """The call was not made again behind the user's back."""

    def judge(seen: Seen) -> Iterator[Row]:
        calls = seen.calls(wrong)
        if len(calls) > 1:
            yield bad(
                f"the tool was called {len(calls)} times; it is not known to be safe", calls[1]
            )
        elif calls:
            yield good(calls[0])

    return judge


def scenario(
    name: str,
    title: str,
    description: str,
    script: type[GoingWrong],
    *,
    more: Sequence[Check] = (),
    transports: frozenset[str] = frozenset({"http", "stdio"}),
    revisions: frozenset[Revision] = EVERY_REVISION,
) -> Scenario:
    return Scenario(
        name=name,
        title=title,
        description=description + " The client is expected to make the calls of `toolCalls` in its"
        " context, one after the other, whatever becomes of each.",
        revisions=revisions,
        suites=OURS,
        make=script,
        context=both_called(),
        transports=transports,
        checks=(
            Check(
                id=f"{name}-survived",
                title="Survived",
                description="the client makes the next call, and it works",
                judge=goes_on(),
                references=reference("responses", "2025-11-25/basic#responses"),
            ),
            *more,
        ),
    )


class AnsweringTwice(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        self.stage.note("answers twice on purpose")
        call.begin_stream()
        call.keep_open()
        self.text(call, "the first answer")
        self.text(call, "the second answer")


class AnsweringNobody(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        self.stage.note("answers an id that nobody used, on purpose")
        call.begin_stream()
        for identifier in ("nobody-has-this-id", 987_654_321, None):
            call.send({"jsonrpc": "2.0", "id": identifier, "result": {"resultType": "complete"}})
        self.text(call, "the right answer")


class AnsweringWithAnError(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        call.error(-32603, "this went wrong inside", {"reason": "on purpose"})


class AnsweringWithBrokenJson(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        self.stage.note("sends what is no JSON before the answer, on purpose")
        call.begin_stream()
        call.send(b'{"jsonrpc": "2.0", "method": ')
        self.text(call, "the right answer")


class AnsweringHuge(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        deep: Obj = {"end": True}
        for _ in range(DEEP):
            deep = {"in": deep}
        content = [{"type": "text", "text": "x" * HUGE}, {"type": "text", "text": _ODD_TEXT}]
        call.result({"content": content, "_meta": {"example.com/deep": deep}})


class CuttingOff(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        self.stage.note("cuts the connection before the answer, on purpose")
        call.cut()


class FailingHttp(GoingWrong):
    def go_wrong(self, call: Call) -> None:
        if call.visit is not None:
            call.visit.respond(500, b"<html>no JSON here</html>", kind="text/html")


def _http_error_is_no_end(seen: Seen) -> Iterator[Row]:
    """A failed POST ends no session: nothing but a 404 does."""
    first = seen.calls(GoingWrong.wrong)
    again = [one for one in seen.requests("initialize") if first and one.place > first[0].place]
    if again:
        yield bad("the client began a new session because of a 500", again[0])
    elif first:
        yield good(first[0])


class UnknownRequests(GoingWrong):
    """Asks what no client knows, and pings."""

    def __init__(self) -> None:
        super().__init__()
        self._call: Call | None = None
        self._open = {"unknown-1", "ping-1"}

    def go_wrong(self, call: Call) -> None:
        self._call = call
        call.ask("unknown-1", "example/unknown", {})
        call.ask("ping-1", "ping", {})
        self.stage.after(5.0, self._finish)

    def answered(self, message: Obj) -> None:
        self._open.discard(str(message.get("id")))
        if not self._open:
            self._finish()

    def _finish(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            self.text(call, "thank you")


def _refuses_the_unknown(seen: Seen) -> Iterator[Row]:
    for said in seen.answers("unknown-1"):
        error = said.value.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        if code == -32601:
            yield good(said)
        else:
            yield bad(f"an unknown method is refused with -32601, not {shown(code)}", said)


def _answers_ping(seen: Seen) -> Iterator[Row]:
    for said in seen.answers("ping-1"):
        if isinstance(said.value.get("result"), dict):
            yield good(said)
        else:
            yield bad("ping is answered with an empty result", said)


_PING = reference("ping", "2025-11-25/basic/utilities/ping")

SCENARIOS = (
    scenario(
        "duplicate-response",
        "The same answer twice",
        "The first tool is answered twice.",
        AnsweringTwice,
        more=(
            Check(
                id="duplicate-response-not-repeated",
                title="NotRepeated",
                description="the call is not made again",
                judge=asked_once(),
            ),
        ),
    ),
    scenario(
        "unknown-response",
        "Answers to nobody",
        "Before the right answer come three whose id nobody used.",
        AnsweringNobody,
    ),
    scenario(
        "server-error",
        "An internal error",
        "The first tool is answered with -32603.",
        AnsweringWithAnError,
        more=(
            Check(
                id="server-error-not-repeated",
                title="NotRepeated",
                description="the call is not made again",
                judge=asked_once(),
            ),
        ),
    ),
    scenario(
        "broken-json",
        "Something that is no JSON",
        "Before the right answer comes a line or event that is no JSON.",
        AnsweringWithBrokenJson,
    ),
    scenario(
        "huge-response",
        "Eight megabytes and odd characters",
        "The first tool answers with a text of 8 MB, with control codes, bidirectional overrides"
        " and markup, and with an object 200 levels deep.",
        AnsweringHuge,
    ),
    scenario(
        "disconnect-mid-call",
        "The connection breaks",
        "The connection is cut while the first tool runs.",
        CuttingOff,
        transports=frozenset({"http"}),
    ),
    scenario(
        "http-500",
        "HTTP 500",
        "The POST of the first tool is answered with 500 and a page of HTML.",
        FailingHttp,
        transports=frozenset({"http"}),
        more=(
            Check(
                id="http-500-session-kept",
                title="SessionKept",
                description="the session goes on",
                judge=_http_error_is_no_end,
                references=reference("sessions", "2025-11-25/basic/transports#session-management"),
                revisions=WITH_HANDSHAKE,
            ),
        ),
    ),
    scenario(
        "server-requests",
        "Requests of the server",
        "While the first tool runs, the server sends a request that no client knows, and a ping.",
        UnknownRequests,
        revisions=WITH_HANDSHAKE,
        more=(
            Check(
                id="server-requests-unknown-refused",
                title="UnknownRefused",
                description="a request of an unknown method is answered with -32601",
                judge=_refuses_the_unknown,
                references=reference("errors", "2025-11-25/basic#responses"),
            ),
            Check(
                id="server-requests-ping-answered",
                title="PingAnswered",
                description="ping is answered",
                judge=_answers_ping,
                references=_PING,
            ),
        ),
    ),
)
