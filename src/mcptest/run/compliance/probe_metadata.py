"""Looking for the protected resource metadata of a server that asks for a token.

Only the server that the user named is asked: a challenge that leads elsewhere is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mcptest.model.capture import AnyRecord, Frame, HttpResponse, StreamEnd
from mcptest.model.deadline import Deadline
from mcptest.model.errors import PeerError
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.rules.corpus.probe_steps import Step
from mcptest.run.compliance.conversation import Asked
from mcptest.run.compliance.probe_course import Course
from mcptest.run.compliance.probe_facts_http import challenge_parameters
from mcptest.run.compliance.probe_seen import Taken, Unobserved
from mcptest.suite.exchange_targets import Exchange
from mcptest.transport.streamable import StreamableHttp
from mcptest.transport.url import parse_url
from mcptest.wire.envelope import decode

_WELL_KNOWN = "/.well-known/oauth-protected-resource"


def fetch_metadata(course: Course, step: Step) -> None:
    """The document that the challenge names, or the one at the well-known places."""
    challenge = course.taken[step.options.of]
    status = (challenge.exchange.http or {}).get("status")
    if status != 401:
        raise Unobserved(
            f"a request without a token was answered with HTTP {status}", "a server with a token"
        )
    named = challenge_parameters(challenge.since).get("resource_metadata", "")
    for url in _places(course.site.order.target.url, named):
        fetched = _fetch(course, url)
        course.evidence.append(fetched)
        document = decode(fetched.received).value
        if isinstance(document, dict):
            course.taken[step.name] = Taken(exchange=fetched.exchange, document=document)
            return
    course.taken[step.name] = Taken()


def _places(endpoint: str, named: str) -> Iterator[str]:
    """Where to look: on the origin that the user named."""
    home = parse_url(endpoint)
    if named:
        try:
            place = home.join(named)
        except ValueError as error:
            raise Unobserved(f"the challenge names {show(named, 80)}, no URL: {error}") from None
        if place.origin != home.origin:
            raise Unobserved(f"the challenge names a document on another server: {show(named, 80)}")
        yield str(place)
        return
    path = home.target.partition("?")[0].rstrip("/")
    if path:
        yield str(home.join(_WELL_KNOWN + path))
    yield str(home.join(_WELL_KNOWN))


def _fetch(course: Course, url: str) -> Asked:
    """GET a document. No header of the user's goes along: it is there for everybody."""
    records: list[AnyRecord] = []
    transport = StreamableHttp(url, sink=records.append)
    deadline = Deadline.after(course.site.order.timeout)
    headers = {"Accept": "application/json"}
    try:
        transport.open(deadline)
        stream = transport.open_stream(deadline, headers)
        while not _has_ended(records, stream) and transport.receive(deadline):
            pass
    except PeerError as error:
        return Asked(Exchange(), f"GET {url}".encode(), error.message.encode())
    finally:
        transport.close(deadline)
    return _as_asked(url, records)


def _has_ended(records: list[AnyRecord], stream: int) -> bool:
    return any(isinstance(record, StreamEnd) and record.stream == stream for record in records)


def _as_asked(url: str, records: list[AnyRecord]) -> Asked:
    response = next((one for one in records if isinstance(one, HttpResponse)), None)
    body = next(
        (one.raw for one in records if isinstance(one, Frame) and one.sender == "server"), b""
    )
    http: dict[str, Any] | None = None
    if response is not None:
        headers = {name.lower(): value for name, value in response.headers}
        http = {"status": response.status, "headers": headers, "body": show(body, 4_000)}
    exchange = msgspec.structs.replace(Exchange(), http=http)
    return Asked(exchange, f"GET {url}".encode(), body, ABSENT)
