"""The scripted authorization server, asked by hand: what it tells, and what it takes."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from mcptest.core.verdict import Side
from mcptest.probe.conformance.auth.protected_server import (
    BASIC,
    MOST_GRANTS,
    OAUTH_METADATA,
    PATH_PRM,
    AuthPlan,
    Grants,
    ProtectedServer,
    keep,
)
from mcptest.probe.conformance.scenario_catalogue import scenario_table
from tests.support.playing import E, Play, playing

AUTH_SCENARIOS = {
    name: scenario
    for name, scenario in scenario_table(Side.CLIENT).items()
    if name.startswith("auth/")
}

CALLBACK = "http://localhost:1/back?kept=yes#gone"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def play() -> Iterator[Play]:
    with playing(ProtectedServer(AuthPlan(method=BASIC)), E) as play:
        yield play
        assert play.site.defect == ""


def ask(
    play: Play, method: str, path: str, body: bytes | None = None, *, origin: str = "as", **how: Any
) -> tuple[int, Any, dict[str, str]]:
    connection = http.client.HTTPConnection(urlsplit(play.site.url(origin)).netloc, timeout=20)
    try:
        connection.request(method, path, body, how.get("headers", {}))
        response = connection.getresponse()
        raw = response.read()
        return response.status, json.loads(raw) if raw else None, dict(response.headers)
    finally:
        connection.close()


def a_code(play: Play, **more: str) -> str:
    query = urlencode({"redirect_uri": CALLBACK, "state": "s", **more})
    status, _, headers = ask(play, "GET", f"/authorize?{query}")
    assert status == 302
    return dict(parse_qsl(urlsplit(headers["Location"]).query))["code"]


def exchange(play: Play, code: str) -> tuple[int, Any]:
    body = urlencode({"grant_type": "authorization_code", "code": code}).encode()
    return ask(play, "POST", "/token", body, headers=FORM)[:2]


def test_a_challenge_leads_to_the_metadata_and_that_to_the_issuer(play: Play) -> None:
    status, _, headers = ask(play, "POST", "/mcp", b"{}", origin="mcp")
    assert status == 401
    assert f'resource_metadata="{play.site.url()}{PATH_PRM}"' in headers["WWW-Authenticate"]
    _, resource, _ = ask(play, "GET", PATH_PRM, origin="mcp")
    assert resource == {
        "resource": f"{play.site.url()}/mcp",
        "authorization_servers": [play.site.url("as")],
    }
    _, metadata, _ = ask(play, "GET", OAUTH_METADATA)
    assert metadata["issuer"] == play.site.url("as")
    assert metadata["token_endpoint_auth_methods_supported"] == [BASIC]


def test_the_redirect_keeps_what_was_in_it_and_adds_the_answer(play: Play) -> None:
    query = urlencode({"redirect_uri": CALLBACK, "state": "a b&c"})
    _, _, headers = ask(play, "GET", f"/authorize?{query}")
    target = urlsplit(headers["Location"])
    found = parse_qs(target.query)
    assert (target.netloc, target.path, target.fragment) == ("localhost:1", "/back", "")
    assert (found["kept"], found["state"]) == (["yes"], ["a b&c"])
    assert found["iss"] == [play.site.url("as")]


def test_a_code_is_good_for_one_token(play: Play) -> None:
    code = a_code(play, scope="one two")
    status, token = exchange(play, code)
    assert (status, token["token_type"], token["scope"]) == (200, "Bearer", "one two")
    assert exchange(play, code)[0] == 400
    assert token["access_token"] in play.site.script.issued


def test_a_registration_gives_back_what_was_asked_for_and_a_secret(play: Play) -> None:
    body = json.dumps({"client_name": "n", "redirect_uris": [CALLBACK]}).encode()
    status, client, _ = ask(play, "POST", "/register", body)
    assert (status, client["client_name"], client["redirect_uris"]) == (201, "n", [CALLBACK])
    assert client["client_secret"] in play.site.script.issued


@pytest.mark.parametrize(
    ("method", "path", "body", "error"),
    [
        ("GET", "/authorize", None, "invalid_request"),
        ("GET", "/authorize?redirect_uri=nowhere", None, "invalid_request"),
        ("GET", "/authorize?redirect_uri=http://[", None, "invalid_request"),
        ("POST", "/register", b"", "invalid_client_metadata"),
        ("POST", "/register", b"[]", "invalid_client_metadata"),
        ("POST", "/register", b"[" * 100_000, "invalid_client_metadata"),
        ("POST", "/register", b'{"a":"\xff"}', "invalid_client_metadata"),
        ("POST", "/token", b"", "unsupported_grant_type"),
        ("POST", "/token", b"\xff=\xfe", "invalid_request"),
        ("POST", "/token", b"a=b&" * 1_000, "invalid_request"),
        ("POST", "/token", b"grant_type=refresh_token", "unsupported_grant_type"),
        ("POST", "/token", b"grant_type=authorization_code&code=x", "invalid_grant"),
    ],
)
def test_nonsense_is_refused_and_the_server_goes_on(
    play: Play, method: str, path: str, body: bytes | None, error: str
) -> None:
    status, answer, _ = ask(play, method, path, body)
    assert (status, answer["error"]) == (400, error)
    assert exchange(play, a_code(play))[0] == 200


def test_a_redirect_can_not_end_its_header(play: Play) -> None:
    query = urlencode({"redirect_uri": "http://localhost:1/\r\nX-Evil: yes\r\n\r\n"})
    _, _, headers = ask(play, "GET", f"/authorize?{query}")
    assert "X-Evil" not in headers


def test_a_client_that_asks_without_end_costs_little() -> None:
    grants = Grants()
    for number in range(MOST_GRANTS + 10):
        keep(grants.issued, str(number), None)
    assert len(grants.issued) == MOST_GRANTS
    assert "9" not in grants.issued


@pytest.mark.parametrize("name", AUTH_SCENARIOS)
def test_every_scenario_says_what_is_expected(name: str) -> None:
    scenario = AUTH_SCENARIOS[name]
    assert scenario.transports == {"http"}
    assert "should" in scenario.description or scenario.client_may_fail
    assert len({check.id for check in scenario.checks}) == len(scenario.checks)
    assert all(check.references for check in scenario.checks)
