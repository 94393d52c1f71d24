"""Masking: a secret in a message is gone wherever it stood, and what has none stays as it is."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from mcptest.core.masking import MASK, Masker
from mcptest.strategies import Crafted, invalid_messages, notifications, requests, tool_arguments
from tests.properties.pace import few
from tests.properties.real_schemas import tool_schema

SECRETS = st.text('abcdefghij0123456789/+é"\\ ', min_size=8, max_size=16).filter(
    lambda text: len(text.strip()) >= 8 and len(set(text)) > 3
)
ARGUMENTS = st.one_of([tool_arguments(tool_schema(number)) for number in range(8)])


def strings_of(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for one in value for text in strings_of(one)]
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in [key, *strings_of(one)]]
    return []


@few(60)
@given(ARGUMENTS, SECRETS, st.booleans())
def test_a_secret_among_arguments_is_gone_and_the_message_is_json(
    arguments: Any, secret: str, as_key: bool
) -> None:
    secret = secret.strip()
    put = {**arguments, f"x{secret}y" if as_key else "secret": f"before {secret} after"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": put}}
    masked = msgspec.json.decode(Masker([secret]).message(msgspec.json.encode(message)))
    assert not [text for text in strings_of(masked) if secret in text]
    assert [text for text in strings_of(masked) if MASK in text]
    assert masked["method"] == "tools/call"


@few(60)
@given(requests() | notifications() | invalid_messages(only=["truncated", "not-json", "utf-16"]))
def test_a_message_without_the_secret_keeps_its_meaning(message: Crafted) -> None:
    masker = Masker(["correct-horse-battery"])
    assert masker.message(message.raw) == message.raw


@few(40)
@given(requests(), SECRETS)
def test_masking_twice_is_masking_once(message: Crafted, secret: str) -> None:
    assume(MASK not in secret)
    masker = Masker([secret])
    once = masker.message(message.raw)
    assert masker.message(once) == once
