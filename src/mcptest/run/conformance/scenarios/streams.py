"""Event streams over HTTP: closed in the middle and taken up again, several at once; and who may
talk to a server on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from mcptest.clients.scenario import Row
from mcptest.model.capture import Frame, HttpRequest, HttpResponse, SseEvent
from mcptest.run.conformance.scenarios.judges import (
    can_not_tell,
    found,
    reference,
    sep,
    told,
)
from mcptest.run.conformance.scenarios.scenario import (
    ACTIVE,
    HTTP,
    ONLY_2025_11_25,
    PENDING,
    SINCE_2025_11_25,
    Needs,
    ServerCheck,
    ServerScenario,
)
from mcptest.run.conformance.scenarios.scene import Heard, Scene
from mcptest.run.conformance.scenarios.stage import Stage

_STRANGER = "evil.example.com"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_STREAMS = ("first", "second", "third")
_REBINDING = (*reference("MCP-Transport-Security", "2025-11-25/basic/transports#security-warning"),)


# -- server-sse-polling


def _reconnect(stage: Stage) -> None:
    """The client comes back by itself after the pause that `retry` names, as it has to."""
    stage.call("called", "test_reconnection", {})


def _is_streamed(heard: Heard) -> bool:
    return "event-stream" in (heard.header("content-type") or "")


def _not_streamed(heard: Heard) -> Row | None:
    if heard.status is None:
        return found([heard.silence], heard, mild=True)
    if heard.status >= 300:
        return found([f"the call was answered with HTTP {heard.status}"], heard, mild=True)
    if not _is_streamed(heard):
        return told("the call was answered with JSON, so there is no stream to look at", heard)
    return None


def _primed(scene: Scene) -> Iterator[Row]:
    heard = scene["called"]
    plain = _not_streamed(heard)
    if plain is not None:
        yield plain
        return
    events = [one for one in scene.on_stream("called") if not _is_comment(one)]
    priming = [one for one in events if isinstance(one, SseEvent) and one.sse.id and not one.data]
    if not priming:
        yield found(["no event with an id and no data came on the stream"], heard, mild=True)
    else:
        late = events[0] is not priming[0]
        yield found(["the priming event was not the first"] if late else [], heard, mild=True)


def _is_comment(one: Frame | SseEvent) -> bool:
    return isinstance(one, SseEvent) and one.comment is not None


def _retried(scene: Scene) -> Iterator[Row]:
    heard = scene["called"]
    plain = _not_streamed(heard)
    if plain is not None:
        yield plain
        return
    fields = [one.sse for one in scene.on_stream("called") if one.sse is not None]
    named = any(one.retry is not None for one in fields)
    yield found([] if named else ["no event of the stream has a retry field"], heard, mild=True)


def _resumed(scene: Scene) -> Iterator[Row]:
    heard = scene["called"]
    plain = _not_streamed(heard)
    if plain is not None:
        yield plain
        return
    again = _come_back(scene)
    if again is None:
        yield _not_closed(heard)
        return
    status = next(
        (
            one.status
            for one in scene.records_since("called")
            if isinstance(one, HttpResponse) and one.stream == again
        ),
        None,
    )
    if status == 405:
        yield told("the server has no stream to come back to (HTTP 405)", heard)
    elif status is None or status >= 300:
        yield found([f"coming back was answered with HTTP {status}"], heard, mild=True)
    else:
        problems = [heard.without_result] if heard.without_result else []
        yield found(problems, heard, mild=True)


def _come_back(scene: Scene) -> int | None:
    """The stream of the GET with Last-Event-ID, if the client had to come back."""
    for record in scene.records_since("called"):
        if isinstance(record, HttpRequest) and any(
            name.lower() == "last-event-id" for name, _ in record.headers
        ):
            return record.stream
    return None


def _not_closed(heard: Heard) -> Row:
    if heard.answered:
        why = "the result came on the first stream, which was not closed before it"
        return told(f"{why}; let test_reconnection close its stream", heard)
    return found([heard.silence], heard, mild=True)


# -- server-sse-multiple-streams


def _at_once(stage: Stage) -> None:
    for label in _STREAMS:
        stage.start(label, "tools/list")
    for label in _STREAMS:
        stage.collect(label)


def _all_accepted(scene: Scene) -> Iterator[Row]:
    statuses = [scene[label].status for label in _STREAMS]
    fine = all(status is not None and 200 <= status < 300 for status in statuses)
    said = ", ".join(map(str, statuses))
    problems = [] if fine else [f"three requests at once were answered with HTTP {said}"]
    yield found(problems, scene["first"])


def _all_deliver(scene: Scene) -> Iterator[Row]:
    streamed = [scene[label] for label in _STREAMS if _is_streamed(scene[label])]
    if not streamed:
        yield told("all three were answered with JSON; streams are the server's choice")
        return
    empty = [heard.silence for heard in streamed if not heard.answered]
    yield found(empty, streamed[0], mild=len(empty) < len(streamed))


# -- dns-rebinding-protection


def _knock(stage: Stage) -> None:
    """Once as a page of another site would, once as a client on this machine does."""
    url = urlsplit(stage.site.order.target.url)
    stage.facts["local"] = (url.hostname or "") in _LOOPBACK
    if not stage.facts["local"]:
        return
    for label, host in (("stranger", _STRANGER), ("friend", url.netloc)):
        headers = {"Host": host, "Origin": f"http://{host}"}
        if stage.is_stateless:
            stage.ask(label, "server/discover", headers=headers)
        else:
            stage.ask(label, "ping", headers=headers)


def _stranger_refused(scene: Scene) -> Iterator[Row]:
    if not scene.facts.get("local"):
        yield _elsewhere()
        return
    heard = scene["stranger"]
    status = heard.status
    fine = status is not None and 400 <= status < 500
    came = heard.silence if status is None else f"HTTP {status}"
    fault = f"Host and Origin {_STRANGER} were answered with {came}, not with 4xx"
    yield found([] if fine else [fault], heard)


def _friend_served(scene: Scene) -> Iterator[Row]:
    if not scene.facts.get("local"):
        yield _elsewhere()
        return
    heard = scene["friend"]
    status = heard.status
    fine = status is not None and 200 <= status < 300
    came = heard.silence if status is None else f"HTTP {status}"
    yield found([] if fine else [f"Host and Origin of this machine were answered: {came}"], heard)


def _elsewhere() -> Row:
    return can_not_tell("run the server on this machine: its URL must be of localhost")


SCENARIOS = (
    ServerScenario(
        name="server-sse-polling",
        title="A stream is closed before its answer",
        description="The fixture `test_reconnection` closes the stream of its request before the "
        "result. The stream should begin with an event that has an id and no data, it should name "
        "a time with `retry`, and the result should come once the client asks for the rest with "
        "`Last-Event-ID`.",
        revisions=ONLY_2025_11_25,
        suites=PENDING,
        transports=HTTP,
        script=_reconnect,
        needs=Needs(capabilities=("tools",), tools=("test_reconnection",)),
        checks=(
            ServerCheck(
                id="server-sse-priming-event",
                name="ServerSendsPrimingEvent",
                description="a stream should begin with an event that has an id and no data",
                judge=_primed,
                references=sep(1699),
            ),
            ServerCheck(
                id="server-sse-retry-field",
                name="ServerSendsRetryField",
                description="a stream should name the time to wait with retry",
                judge=_retried,
                references=sep(1699),
            ),
            ServerCheck(
                id="server-sse-disconnect-resume",
                name="ServerDisconnectResume",
                description="a closed stream should be taken up again by Last-Event-ID",
                judge=_resumed,
                references=sep(1699),
            ),
        ),
    ),
    ServerScenario(
        name="server-sse-multiple-streams",
        title="Several requests at once",
        description="Three `tools/list` are sent at once; all of them are accepted, and each that "
        "is answered with a stream delivers its answer.",
        revisions=SINCE_2025_11_25,
        suites=ACTIVE,
        transports=HTTP,
        script=_at_once,
        needs=Needs(capabilities=("tools",)),
        checks=(
            ServerCheck(
                id="server-accepts-multiple-post-streams",
                name="ServerAcceptsMultiplePostStreams",
                description="several requests at once are accepted",
                judge=_all_accepted,
                references=sep(1699),
            ),
            ServerCheck(
                id="server-sse-streams-functional",
                name="ServerSSEStreamsFunctional",
                description="each of several streams delivers its answer",
                judge=_all_deliver,
                references=sep(1699),
            ),
        ),
    ),
    ServerScenario(
        name="dns-rebinding-protection",
        title="A page of another site is refused",
        description="A request whose Host and Origin are those of another site is refused with "
        "4xx, one from this machine is served. It is about servers on this machine that ask for "
        "no credentials.",
        revisions=SINCE_2025_11_25,
        suites=ACTIVE,
        transports=HTTP,
        script=_knock,
        checks=(
            ServerCheck(
                id="localhost-host-rebinding-rejected",
                name="DNSRebindingRejected",
                description="a Host and Origin of another site are refused",
                judge=_stranger_refused,
                references=_REBINDING,
            ),
            ServerCheck(
                id="localhost-host-valid-accepted",
                name="LocalhostHostAccepted",
                description="a Host and Origin of this machine are served",
                judge=_friend_served,
                references=_REBINDING,
            ),
        ),
    ),
)
