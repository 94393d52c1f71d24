"""The secrets of the process: found by their names, and hidden by whoever writes."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.commands.output import MaskedStream, masked_streams
from mcptest.core.limits import Limits
from mcptest.core.masking import Masker
from mcptest.core.redaction import (
    Redaction,
    is_secret_name,
    redaction,
    secrets_of_command,
    secrets_of_environment,
    secrets_of_headers,
    secrets_of_line,
    secrets_of_url,
)
from mcptest.core.safe_text import show
from mcptest.suite.reading import Place, SuiteProblem, render
from mcptest.transport.files import replace_file
from mcptest.transport.stdio import StderrLog
from mcptest.transport.target import Target

SECRET = "Zq7/x+9&w<8>_k"


# -- what is a secret ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["srv", "--api-key", "Arg9x8y"], {"Arg9x8y": "api-key"}),
        (["srv", "--api-key=Arg9x8y"], {"Arg9x8y": "api-key"}),
        (["env", "API_KEY=Arg9x8y", "srv"], {"Arg9x8y": "API_KEY"}),
        (
            ["srv", "-H", "Authorization: Bearer Brr9x8y"],
            {"Bearer Brr9x8y": "Authorization", "Brr9x8y": "Authorization"},
        ),
        (["audit", "--server", "srv --token Tok9x8y"], {"Tok9x8y": "token"}),
        (["audit", "--headers", "a=b,X-Api-Key=Hdr9x8y"], {"Hdr9x8y": "X-Api-Key"}),
        (["srv", "--db=postgres://me:Pwd9x8y@h/db"], {"Pwd9x8y": "URL_PASSWORD"}),
        (["srv", "--token-env", "MY_VARIABLE"], {}),
        (["srv", "--max-tokens", "5000"], {}),
        (["srv", "--verbose", "the bearer authentication"], {}),
    ],
)
def test_the_words_of_a_command_tell_their_secrets(words: list[str], found: dict[str, str]) -> None:
    told = secrets_of_command(words)
    assert {secret: name for secret, name in told.items() if secret in found} == found
    assert found or not told


@pytest.mark.parametrize(
    "line",
    [
        "  API_KEY: Arg9x8y  # mine",
        '  env: {API_KEY: "Arg9x8y", B: 1}',
        "- 'API_KEY=Arg9x8y'",
        '  {"headers": {"Authorization": "Bearer Arg9x8y"}',
        "  url: http://h/mcp?token=Arg9x8y",
    ],
)
def test_a_line_that_can_not_be_read_is_shown_without_its_secrets(line: str) -> None:
    problem = SuiteProblem(Place("s.yaml", 1, 3), "wrong", source=line)
    assert "Arg9x8y" not in redaction.text(render(problem))


def test_a_word_of_millions_of_letters_is_looked_through_once() -> None:
    """Its length squared would take hours."""
    word = "a" * 3_000_000
    assert secrets_of_line(f"  {word} API_KEY: Arg9x8y") == {"Arg9x8y": "API_KEY"}
    assert secrets_of_url(f"{word} x://h/mcp?token=Arg9x8y") == {"Arg9x8y": "token"}


def test_a_url_tells_who_somebody_is_and_parameters_with_the_name_of_a_secret() -> None:
    url = (
        "https://ghp9Tok:p%40ss9w@h.example/mcp?api_key=K%2F9x8y&page=12345678#access_token=T9x8y7"
    )
    found = secrets_of_url(url)
    assert {"ghp9Tok", "p%40ss9w", "p@ss9w", "K%2F9x8y", "K/9x8y", "T9x8y7"} == set(found)


def test_parts_of_a_secret_that_turn_up_alone_are_secrets() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END KEY-----"
    account = json.dumps({"type": "service", "private_key": "Prv9x8y7z6"})
    found = set(secrets_of_environment({"TLS_KEY": key, "CREDENTIALS": account}))
    assert {"MIIEvQIBADANBgkqhkiG9w0", "Prv9x8y7z6"} <= found
    assert "service" not in found
    assert "sid9x8y7" in set(secrets_of_headers({"Cookie": "a=b; sid=sid9x8y7"}))


@pytest.mark.parametrize("value", ["abc", "1234567", "token", "secret", "password", "changeme"])
def test_short_values_and_everyday_words_are_no_secrets(value: str) -> None:
    """To hide them would hide half of every message, and nothing that is worth it."""
    assert value not in set(secrets_of_environment({"API_KEY": value}))
    assert not secrets_of_command(["srv", "--api-key", value])


def test_the_name_of_a_variable_that_holds_a_secret_is_none() -> None:
    assert is_secret_name("--token")
    assert not is_secret_name("--token-env")


# -- hiding it ----------------------------------------------------------------------------------


def units(character: str) -> list[str]:
    digits = character.encode("utf-16-be").hex()
    return [digits[at : at + 4] for at in range(0, len(digits), 4)]


SPELLINGS = {
    "JSON": lambda one: one if one.isalnum() and one.isascii() else json.dumps(one)[1:-1],
    "JSON, all of it": lambda one: "".join(f"\\u{unit}" for unit in units(one)),
    "JSON within JSON": lambda one: "".join(f"\\\\u{unit.upper()}" for unit in units(one)),
    "percent": lambda one: "".join(f"%{byte:02x}" for byte in one.encode()),
    "percent twice": lambda one: "".join(f"%25{byte:02X}" for byte in one.encode()),
    "HTML": lambda one: f"&#{ord(one)};",
    "HTML in hex": lambda one: f"&#x{ord(one):X};",
    "Markdown": lambda one: one if one.isalnum() else f"\\{one}",
    "plain": lambda one: one,
}


@given(
    st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=8, max_size=20).filter(
        lambda text: len(set(text)) > 3
    ),
    st.lists(st.sampled_from(sorted(SPELLINGS)), min_size=1, max_size=20),
)
def test_a_secret_is_found_with_each_character_spelled_in_its_own_way(
    secret: str, ways: list[str]
) -> None:
    spelled = "".join(SPELLINGS[ways[at % len(ways)]](one) for at, one in enumerate(secret.strip()))
    assert Masker([secret]).text(f"a {spelled} z") == "a *** z"
    assert Masker([secret]).raw(f"a {spelled} z".encode()) == b"a *** z"


def test_a_document_that_was_json_is_json_afterwards() -> None:
    masker = Masker(["123456789", SECRET])
    whole = json.dumps({"id": 123456789, "said": [SECRET]}, indent=1).encode()
    assert json.loads(masker.document(whole)) == {"id": "***", "said": ["***"]}
    lines = b'{"id": 123456789}\n{"id": 1}\n'
    assert [json.loads(line) for line in masker.document(lines).splitlines()] == [
        {"id": "***"},
        {"id": 1},
    ]


def test_what_holds_no_secret_stays_the_same_object() -> None:
    content = b'{"a": "\\u00e9 100% &amp;"}'
    assert Redaction().document(content) is content
    assert Masker([SECRET]).document(content) == content


# -- who knows, and who asks --------------------------------------------------------------------


def test_whoever_makes_a_server_tells_its_secrets() -> None:
    Target(way="http", label="x", url=f"https://h/mcp?token={SECRET.replace('&', '%26')}")
    Target(way="stdio", label="x", command=("srv", "--password", "Pwd9x8y"))
    assert redaction.text(f"{SECRET} and Pwd9x8y") == "*** and ***"


def test_secrets_that_come_later_are_hidden_as_well() -> None:
    known = Redaction()
    known.learn(lambda: ["first-9x8y"])
    assert known.text("first-9x8y second-9x8y") == "*** second-9x8y"
    known.learn(lambda: ["second-9x8y"])
    assert known.text("first-9x8y second-9x8y") == "*** ***"


def test_a_text_is_masked_before_it_is_cut() -> None:
    redaction.learn(lambda: [SECRET])
    assert SECRET[:5] not in show(f"ten chars {SECRET} and more", 14)


@pytest.mark.parametrize("shift", range(0, 40, 7))
def test_a_tail_of_stderr_does_not_begin_with_half_a_secret(shift: int) -> None:
    redaction.learn(lambda: [SECRET])
    log = StderrLog(Limits(stderr_tail_bytes=8_000))
    text = (SECRET + "-" * 13) * 2_000
    for at in range(shift, len(text), 1_000):
        log.feed(text[at : at + 1_000].encode(), 0.0)
    (line,) = log.tail()
    assert not any(SECRET[at : at + 5] in line for at in range(len(SECRET) - 4)), line


def test_a_file_is_written_without_secrets(tmp_path: Path) -> None:
    redaction.learn(lambda: [SECRET])
    replace_file(tmp_path / "f", f"a {SECRET} z".encode())
    assert (tmp_path / "f").read_bytes() == b"a *** z"


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_secret_that_is_written_in_pieces_is_hidden(size: int) -> None:
    redaction.learn(lambda: [SECRET])
    out = io.StringIO()
    stream = MaskedStream(out)
    text = f"a {SECRET} b {SECRET[:6]}! {SECRET}\n"
    for at in range(0, len(text), size):
        stream.write(text[at : at + size])
        stream.flush()
    shown = out.getvalue()
    assert SECRET[3:] not in shown
    assert shown.count("***") == 2
    assert f"b {SECRET[:6]}! " in shown, "what only begins like a secret is none"


def test_what_is_flushed_is_there_at_once_unless_it_is_half_a_secret() -> None:
    redaction.learn(lambda: [SECRET])
    out = io.StringIO()
    stream = MaskedStream(out)
    stream.write(f"50 % {SECRET[:2]}")
    stream.flush()
    assert out.getvalue() == f"50 % {SECRET[:2]}"
    stream.write(f"{SECRET[:8]}")
    stream.flush()
    assert out.getvalue() == f"50 % {SECRET[:2]}"
    stream.release()
    assert out.getvalue() == f"50 % {SECRET[:2]}{SECRET[:8]}"


def test_everything_that_is_printed_is_masked(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    redaction.learn(lambda: [SECRET])
    with masked_streams():
        print(SECRET)
        print(SECRET, file=sys.stderr)
        sys.stdout.flush()
        sys.stdout.buffer.write(json.dumps([SECRET]).encode())
        sys.stdout.buffer.flush()
    said = capsysbinary.readouterr()
    assert said.out == b'***\n["***"]'
    assert said.err == b"***\n"


def test_our_own_environment_is_hidden_from_servers_behind_a_url_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    Target(way="http", label="x", url="http://127.0.0.1:1/mcp")
    assert redaction.text(os.environ["SOME_API_KEY"]) == "***"
