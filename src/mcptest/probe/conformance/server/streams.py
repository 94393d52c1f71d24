"""Event streams over HTTP: closed in the middle and taken up again, several at once; and who may
talk to a server on this machine.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from mcptest.core.capture import HttpRequest, HttpResponse, SseEvent
from mcptest.probe.conformance.scenario import (
    HTTP,
    ONLY_2025_11_25,
    CheckFinding,
    Judge,
    Scenario,
    ScenarioNeeds,
    check,
    info,
    reference,
    sep,
    untestable,
    verdict,
    warned,
)
from mcptest.probe.conformance.server.scene import (
    ACTIVE,
    PENDING,
    SINCE_2025_11_25,
    Heard,
    ScenarioStage,
    Scene,
)

_STRANGER = "evil.example.com"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_STREAMS = ("first", "second", "third")
_REBINDING = (*reference("MCP-Transport-Security", "2025-11-25/basic/transports#security-warning"),)


# -- server-sse-polling


def _reconnect(stage: ScenarioStage) -> None:
    """The client comes back by itself after the pause that `retry` names, as it has to."""
    stage.call("called", "test_reconnection", {})


def _is_streamed(heard: Heard) -> bool:
    return "event-stream" in (heard.header("content-type") or "")


def _streamed(judge: Callable[[Scene, Heard], CheckFinding]) -> Judge[Scene]:
    """Of a call that was answered with a stream."""

    def judged(scene: Scene) -> CheckFinding:
        heard = scene["called"]
        if heard.status is None:
            return warned(heard.silence, heard)
        if heard.status >= 300:
            return warned(f"the call was answered with HTTP {heard.status}", heard)
        if not _is_streamed(heard):
            return info("the call was answered with JSON, so there is no stream to look at", heard)
        return judge(scene, heard)

    return judged


@check(
    "server-sse-priming-event",
    "a stream should begin with an event that has an id and no data",
    title="ServerSendsPrimingEvent",
)
@_streamed
def _primed(scene: Scene, heard: Heard) -> CheckFinding:
    events = [one for one in scene.on_stream("called") if getattr(one, "comment", None) is None]
    priming = [one for one in events if isinstance(one, SseEvent) and one.sse.id and not one.data]
    if not priming:
        return warned("no event with an id and no data came on the stream", heard)
    late = events[0] is not priming[0]
    return verdict("the priming event was not the first" if late else "", heard, mild=True)


@check(
    "server-sse-retry-field",
    "a stream should name the time to wait with retry",
    title="ServerSendsRetryField",
)
@_streamed
def _retried(scene: Scene, heard: Heard) -> CheckFinding:
    fields = [one.sse for one in scene.on_stream("called") if one.sse is not None]
    named = any(one.retry is not None for one in fields)
    return verdict("" if named else "no event of the stream has a retry field", heard, mild=True)


@check(
    "server-sse-disconnect-resume",
    "a closed stream should be taken up again by Last-Event-ID",
    title="ServerDisconnectResume",
)
@_streamed
def _resumed(scene: Scene, heard: Heard) -> CheckFinding:
    again = _come_back(scene)
    if again is None and not heard.answered:
        return warned(heard.silence, heard)
    if again is None:
        why = "the result came on the first stream, which was not closed before it"
        return info(f"{why}; let test_reconnection close its stream", heard)
    status = next(
        (
            one.status
            for one in scene.records_since("called")
            if isinstance(one, HttpResponse) and one.stream == again
        ),
        None,
    )
    if status == 405:
        return info("the server has no stream to come back to (HTTP 405)", heard)
    if status is None or status >= 300:
        return warned(f"coming back was answered with HTTP {status}", heard)
    return verdict(heard.without_result, heard, mild=True)


def _come_back(scene: Scene) -> int | None:
    """The stream of the GET with Last-Event-ID, if the client had to come back."""
    for record in scene.records_since("called"):
        if isinstance(record, HttpRequest) and any(
            name.lower() == "last-event-id" for name, _ in record.headers
        ):
            return record.stream
    return None


# -- server-sse-multiple-streams


def _at_once(stage: ScenarioStage) -> None:
    for label in _STREAMS:
        stage.start(label, "tools/list")
    for label in _STREAMS:
        stage.collect(label)


@check("server-accepts-multiple-post-streams", "several requests at once are accepted")
def _all_accepted(scene: Scene) -> CheckFinding:
    statuses = [scene[label].status for label in _STREAMS]
    fine = all(status is not None and 200 <= status < 300 for status in statuses)
    said = ", ".join(map(str, statuses))
    problems = [] if fine else [f"three requests at once were answered with HTTP {said}"]
    return verdict(problems, scene["first"])


@check(
    "server-sse-streams-functional",
    "each of several streams delivers its answer",
    title="ServerSSEStreamsFunctional",
)
def _all_deliver(scene: Scene) -> CheckFinding:
    streamed = [scene[label] for label in _STREAMS if _is_streamed(scene[label])]
    if not streamed:
        return info("all three were answered with JSON; streams are the server's choice")
    empty = [heard.silence for heard in streamed if not heard.answered]
    return verdict(empty, streamed[0], mild=len(empty) < len(streamed))


# -- dns-rebinding-protection


def _knock(stage: ScenarioStage) -> None:
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


@check(
    "localhost-host-rebinding-rejected",
    "a Host and Origin of another site are refused",
    title="DNSRebindingRejected",
)
def _stranger_refused(scene: Scene) -> CheckFinding:
    if not scene.facts.get("local"):
        return _elsewhere()
    heard = scene["stranger"]
    status = heard.status
    fine = status is not None and 400 <= status < 500
    came = heard.silence if status is None else f"HTTP {status}"
    fault = f"Host and Origin {_STRANGER} were answered with {came}, not with 4xx"
    return verdict("" if fine else fault, heard)


@check(
    "localhost-host-valid-accepted",
    "a Host and Origin of this machine are served",
    title="LocalhostHostAccepted",
)
def _friend_served(scene: Scene) -> CheckFinding:
    if not scene.facts.get("local"):
        return _elsewhere()
    heard = scene["friend"]
    status = heard.status
    fine = status is not None and 200 <= status < 300
    came = heard.silence if status is None else f"HTTP {status}"
    return verdict(
        [] if fine else [f"Host and Origin of this machine were answered: {came}"], heard
    )


def _elsewhere() -> CheckFinding:
    return untestable("run the server on this machine: its URL must be of localhost")


SCENARIOS = (
    Scenario(
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
        needs=ScenarioNeeds(capabilities=("tools",), tools=("test_reconnection",)),
        references=sep(1699),
        checks=(_primed, _retried, _resumed),
    ),
    Scenario(
        name="server-sse-multiple-streams",
        title="Several requests at once",
        description="Three `tools/list` are sent at once; all of them are accepted, and each that "
        "is answered with a stream delivers its answer.",
        revisions=SINCE_2025_11_25,
        suites=ACTIVE,
        transports=HTTP,
        script=_at_once,
        needs=ScenarioNeeds(capabilities=("tools",)),
        references=sep(1699),
        checks=(_all_accepted, _all_deliver),
    ),
    Scenario(
        name="dns-rebinding-protection",
        title="A page of another site is refused",
        description="A request whose Host and Origin are those of another site is refused with "
        "4xx, one from this machine is served. It is about servers on this machine that ask for "
        "no credentials.",
        revisions=SINCE_2025_11_25,
        suites=ACTIVE,
        transports=HTTP,
        script=_knock,
        references=_REBINDING,
        checks=(_stranger_refused, _friend_served),
    ),
)
