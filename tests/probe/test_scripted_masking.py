"""A capture keeps the tokens that a script made up, and no others."""

from __future__ import annotations

import base64

import pytest

from mcptest.core.capture import HttpRequest
from mcptest.core.masking import mask_record
from mcptest.probe.conformance.client.scenario_server import ScenarioMasker
from mcptest.servers.scripted.script import Script


class Issuing(Script):
    issued = ("our-token", "our secret")


def basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("Bearer our-token", "Bearer our-token"),
        ("bearer our-token", "bearer our-token"),
        ("Bearer somebody's", "Bearer ***"),
        ("Bearer our-token-and-more", "Bearer ***"),
        ("Bearer ", "***"),
        ("our-token", "***"),
        (basic("client:our+secret"), basic("client:our+secret")),
        (basic("client:their-secret"), "Basic ***"),
        (basic("our-token"), "Basic ***"),
        ("Basic %%%", "Basic ***"),
        ("Basic /w==", "Basic ***"),
    ],
)
def test_only_what_the_script_issued_is_kept(given: str, written: str) -> None:
    masker = ScenarioMasker(Issuing())
    headers = (("Authorization", given), ("X-Other", "our-token"))
    record = HttpRequest(stream=1, method="POST", url="http://localhost/", headers=headers)
    masked = mask_record(record, masker)
    assert isinstance(masked, HttpRequest)
    assert masked.headers == (("Authorization", written), ("X-Other", "our-token"))


def test_a_secret_of_the_user_is_masked_wherever_it_stands() -> None:
    masker = ScenarioMasker(Issuing(), ["user-secret"])
    headers = (("Authorization", "Bearer user-secret"), ("X-Other", "user-secret"))
    assert masker.headers(headers) == (("Authorization", "Bearer ***"), ("X-Other", "***"))
