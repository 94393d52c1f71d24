"""No secret survives in anything that is written."""

from __future__ import annotations

import base64
import json
import tracemalloc
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mcptest.core import masking
from mcptest.core.capture import (
    AnyRecord,
    Frame,
    HttpRequest,
    HttpResponse,
    Note,
    Opened,
    Sse,
    SseEvent,
    Stderr,
    Trouble,
)
from mcptest.core.masking import MASK, Masker, mask_record
from mcptest.core.redaction import (
    is_credential_header,
    is_secret_name,
    secrets_of_environment,
    secrets_of_header,
    secrets_of_headers,
)
from tests.support.deep_values import deepest
from tests.support.records import encode_record

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=20).filter(
    lambda text: len(text.strip()) >= 8 and len(set(text)) > 3
)

AROUND = st.text(st.characters(codec="ascii", exclude_characters="*"), max_size=8)
PLAIN = "correct horse/battery+staple=é"


def forms(secret: str) -> dict[str, str]:
    """How a peer may give a secret back."""
    raw = secret.encode()
    return {
        "as it is": secret,
        "JSON": json.dumps(secret)[1:-1],
        "JSON, readable": json.dumps(secret, ensure_ascii=False)[1:-1],
        "JSON with escaped slashes": json.dumps(secret)[1:-1].replace("/", "\\/"),
        "URL": quote(secret, safe=""),
        "URL path": quote(secret),
        "form": quote_plus(secret),
        "base64": base64.b64encode(raw).decode().rstrip("="),
        "base64 for URLs": base64.urlsafe_b64encode(raw).decode().rstrip("="),
        "base64 after one byte": base64.b64encode(b"x" + raw).decode()[2:].rstrip("="),
        "base64 after two bytes": base64.b64encode(b"xy" + raw).decode()[3:].rstrip("="),
    }


@pytest.mark.parametrize("form", forms(PLAIN).values(), ids=forms(PLAIN).keys())
def test_a_secret_is_found_in_each_form(form: str) -> None:
    # The last character of base64 also depends on what follows the secret.
    core = form if form in (PLAIN,) else form[:-1]
    masked = Masker([PLAIN]).text(f"before {form} after")
    assert core not in masked
    assert masked.startswith("before ***")


@given(SECRETS, AROUND, AROUND)
def test_no_form_of_a_secret_survives_in_text(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    masker = Masker([secret])
    for name in ("as it is", "JSON", "JSON, readable", "URL", "URL path", "form"):
        form = forms(secret)[name]
        assert form not in masker.text(before + form + after)


@given(SECRETS, AROUND, AROUND, st.booleans())
def test_a_masked_message_is_still_json_and_its_strings_hold_no_secret(
    secret: str, before: str, after: str, ascii_only: bool
) -> None:
    secret = secret.strip()
    value = {"a": [before + secret + after, 1, None], before + secret: {"b": json.dumps(secret)}}
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    masked = Masker([secret]).message(raw)
    text = json.dumps(json.loads(masked), ensure_ascii=False)
    assert secret not in text
    assert json.dumps(secret)[1:-1] not in text


@given(st.integers(10**8, 10**14), st.integers(0, 9))
def test_a_secret_that_looks_like_a_number_leaves_the_message_json(number: int, digit: int) -> None:
    raw = f'{{"id":{digit},"pin":{number},"text":"{number}"}}'.encode()
    masked = json.loads(Masker([str(number)]).message(raw))
    assert masked == {"id": digit, "pin": MASK, "text": MASK}


def test_a_short_number_is_more_likely_an_id_and_stays() -> None:
    raw = b'{"id":3000,"text":"port 3000"}'
    assert json.loads(Masker(["3000"]).message(raw)) == {"id": 3000, "text": "port ***"}


def test_a_word_of_json_itself_can_be_a_secret() -> None:
    raw = b'{"a":true,"b":"true","c":[true]}'
    assert json.loads(Masker(["true"]).message(raw)) == {"a": True, "b": MASK, "c": [True]}


@pytest.mark.parametrize(
    "spelling",
    [
        "s\\u0065cret-Value",
        "\\u0073\\u0065cret-Value",
        "s\\u0065cret\\u002DValue",
        "secret\\u002dValue",
    ],
)
def test_an_unusual_spelling_in_json_hides_nothing(spelling: str) -> None:
    raw = f'{{"a":"x{spelling}y","b":"{spelling}"}}'.encode()
    assert json.loads(Masker(["secret-Value"]).message(raw)) == {"a": "x***y", "b": MASK}


def test_a_message_without_a_secret_is_kept_byte_for_byte() -> None:
    raw = b'{ "a" : "\\u0041\\n", "a" : 1.0e0 }'
    assert Masker(["secret-value"]).message(raw) is raw
    assert Masker().message(raw) is raw


def test_a_message_that_is_no_json_is_masked_too() -> None:
    assert Masker(["secret-value"]).message(b"\xff secret-value {") == b"\xff *** {"


def records_with(secret: str) -> list[AnyRecord]:
    """Every kind of record that can hold a peer's words, with the secret in each of its fields."""
    return [
        Opened(server_label=secret, peer=f"server --token {secret}", transport="stdio"),
        Frame(
            sender="server",
            raw=json.dumps({"a": secret}).encode(),
            sse=Sse(event=secret, id=secret),
        ),
        Frame(sender="client", raw=secret.encode()),
        HttpRequest(stream=1, method="POST", url=f"http://h/{secret}", headers=(("X-A", secret),)),
        HttpResponse(stream=1, status=200, headers=(("X-Echo", f"a {secret} b"),)),
        SseEvent(stream=1, sse=Sse(id=secret, event=secret), data=secret, comment=secret),
        Stderr(text=f"token={secret}"),
        Trouble(error="protocol", detail=secret, excerpt=secret),
        Note(text=secret),
    ]


@pytest.mark.parametrize("place", range(len(records_with("x"))))
def test_no_record_carries_a_secret_in_any_field(place: int) -> None:
    secret = "s3cr3t-token-value"
    record = records_with(secret)[place]
    written = encode_record(mask_record(record, Masker([secret])))
    assert secret.encode() not in written
    assert MASK.encode() in written


@given(SECRETS)
def test_no_record_carries_any_secret(secret: str) -> None:
    secret = secret.strip()
    # The names of kinds and fields are no secrets, whatever was drawn.
    assume(not any(secret in encode_record(one).decode() for one in records_with("x")))
    masker = Masker([secret])
    for record in records_with(secret):
        shown = msgspec.to_builtins(mask_record(record, masker))
        assert secret not in json.dumps(shown, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("Authorization", "Bearer abc.def", "Bearer ***"),
        ("authorization", "abc", "***"),
        ("Cookie", "a=b; c=d", "***"),
        ("Set-Cookie", "sid=1; Path=/", "***"),
        ("X-Api-Key", "k", "***"),
        ("Proxy-Authorization", "Basic YTpi", "Basic ***"),
        ("Accept", "application/json", "application/json"),
    ],
)
def test_headers_that_carry_credentials_are_masked_whatever_they_hold(
    name: str, value: str, masked: str
) -> None:
    assert Masker().headers(((name, value),)) == ((name, masked),)


def test_a_header_hides_its_token_and_what_basic_credentials_decode_to() -> None:
    basic = base64.b64encode(b"user:pass word").decode()
    assert set(secrets_of_header(f"Basic {basic}")) == {
        f"Basic {basic}",
        basic,
        "user:pass word",
        "pass word",
    }
    assert list(secrets_of_header("Bearer t")) == ["Bearer t", "t"]
    assert list(secrets_of_header("plain")) == ["plain"]
    assert list(secrets_of_header("Basic é")) == ["Basic é", "é"]


@pytest.mark.parametrize(
    "name",
    [
        *("API_KEY", "OPENAI_APIKEY", "GITHUB_TOKEN", "GITHUB_PAT", "PGPASSWORD", "DB_PWD"),
        *("AWS_SECRET_ACCESS_KEY", "SENTRY_DSN", "AUTH", "BASIC_AUTH", "clientSecret", "api-key"),
        *("SLACK_WEBHOOK_URL", "AZURE_STORAGE_CONNECTION_STRING", "MY_CREDENTIALS", "accessToken"),
        *("SESSION_COOKIE", "LINKEDIN_SESSION", "PRIVATE_KEY", "DB_PASS"),
    ],
)
def test_a_name_that_says_so_is_that_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "PWD", "OLDPWD", "BASE_URL", "LOG_LEVEL", "NODE_OPTIONS", "MONKEY"),
        *("KEYBOARD", "AUTHOR", "GIT_AUTHOR_NAME", "COMPASS", "SSH_AUTH_SOCK", "XAUTHORITY"),
        *(
            "GOOGLE_APPLICATION_CREDENTIALS_FILE",
            "TOKEN_URL",
            "AUTH_TYPE",
            "MAX_TOKENS",
            "KEY_NAME",
        ),
        *("DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_TYPE", "DESKTOP_SESSION", "", "__"),
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


def test_the_length_of_a_value_does_not_make_it_a_secret() -> None:
    env = {"BASE_URL": "https://api.example.com/v2/things", "REGION": "eu-central-1-frankfurt"}
    assert list(secrets_of_environment(env)) == []


def test_the_password_in_a_url_is_secret_whatever_the_variable_is_called() -> None:
    url = "postgres://me:s3cr3t@db.example.com/shop"
    assert list(secrets_of_environment({"DATABASE_URL": url})) == [url, "s3cr3t"]


@pytest.mark.parametrize("value", ["", "test", "none", "TRUE", "4096", "password", "changeme"])
def test_an_ordinary_word_or_number_is_left_alone_whatever_the_name(value: str) -> None:
    assert list(secrets_of_environment({"API_KEY": value})) == []
    assert list(secrets_of_headers({"X-Api-Key": value})) == []


def test_headers_of_the_protocol_hold_no_credentials() -> None:
    assert is_credential_header("X-Api-Key")
    assert is_credential_header("Proxy-Authorization")
    assert not is_credential_header("Mcp-Session-Id")
    assert not is_credential_header("Mcp-Param-Key")
    assert not is_credential_header("Access-Control-Allow-Credentials")


def test_a_value_that_is_too_short_to_be_a_secret_is_left_alone() -> None:
    masker = Masker(["1", "abc", "   "])
    assert masker.idle
    assert masker.text("1 abc") == "1 abc"


@pytest.mark.parametrize("secret", ["bytes-\udcff-raw", "half-\ud800-pair"])
def test_a_secret_that_is_no_text_is_no_reason_to_fail(secret: str) -> None:
    masker = Masker([secret, "another-secret"])
    assert masker.text("another-secret") == MASK
    assert masker.message(b"bytes-\xff-raw") in {MASK.encode(), b"bytes-\xff-raw"}


def test_the_longest_of_several_secrets_is_replaced_whole() -> None:
    assert Masker(["secret", "secret-longer"]).text("secret-longer") == MASK


HUGE = "".join(chr(33 + at * at % 90) for at in range(300_000))


def test_a_secret_of_300_kb_is_found_in_each_form() -> None:
    masker = Masker([HUGE, "short-secret"])
    for name, form in forms(HUGE).items():
        masked = masker.text(f"before {form} short-secret after")
        # The last characters of base64 also depend on what follows the secret.
        assert len(masked) < 100, name
        assert masked.startswith("before ***"), name
        assert masked.endswith("*** after"), name
    raw = json.dumps({"a": HUGE, "b": "short-secret"}).encode()
    assert json.loads(masker.message(raw)) == {"a": MASK, "b": MASK}


def test_no_pattern_is_made_of_a_huge_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 15 seconds to compile one, again for every connection."""
    compiled: list[int] = []
    real = masking._compiled

    def counting(pattern: str) -> Any:
        compiled.append(len(pattern))
        return real(pattern)

    monkeypatch.setattr(masking, "_compiled", counting)
    Masker([HUGE, "short-secret"]).text("a \\ b")
    assert compiled
    assert max(compiled) < 10_000


def test_the_first_half_of_a_huge_secret_is_hidden_where_a_text_was_cut() -> None:
    masker = Masker([HUGE])
    for length in (5, 1_000, 150_000, len(HUGE) - 1):
        assert masker.cut_text(f"first\nsaid {HUGE[:length]}…") == "first\nsaid ***…"
    assert masker.cut_text(f"said {HUGE[:4]}…") == f"said {HUGE[:4]}…"


def test_a_large_message_is_masked_without_being_read() -> None:
    """A secret in an answer that just fits: each copy of its value would count."""
    raw = b'{"text":"' + b"hello " * 2_000_000 + b'hush-hush-1"}'
    masker = Masker(["hush-hush-1"])
    tracemalloc.start()
    try:
        masked = masker.message(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert masked == raw.replace(b"hush-hush-1", b"***")
    assert peak < 4 * len(raw)


SECRET = "Zq7Wx9Kp2Lm4Rt6Yv8Bn1Cd3Ef5Gh7Jk9Mn2Pq4S"


@pytest.mark.parametrize("length", [5, 12, 39])
@pytest.mark.parametrize("after", ["", " (a long line was cut here)", '","more":"', "</title>"])
def test_half_a_secret_before_a_cut_is_hidden_wherever_it_stands(length: int, after: str) -> None:
    masker = Masker([SECRET, "another-Secret9"])
    text = f"a … b {SECRET[:length]}…{after} and {SECRET} {SECRET[:length]}"
    hidden = f"a … b ***…{after} and *** {SECRET[:length]}"
    assert masker.text(text) == hidden
    assert masker.raw(text.encode()) == hidden.encode()
    half = quote(SECRET + "/+", safe="")[:length]
    assert Masker([SECRET + "/+"]).text(f"{half}…") == "***…"


def test_what_is_no_secret_stays_before_a_cut() -> None:
    text = "Zq7…, Zq7Wx9Kp2 and Zq7Wx9Kp3…"
    assert Masker([SECRET]).text(text) == text


def test_half_a_secret_at_the_end_of_half_a_message_is_hidden() -> None:
    half = b'{"jsonrpc":"2.0","result":{"x":"a ' + SECRET[:12].encode()
    assert Masker([SECRET]).message(half) == b'{"jsonrpc":"2.0","result":{"x":"a ***'
    whole = half + b'"}}'
    assert Masker([SECRET]).message(whole) == whole


def test_a_value_as_deep_as_may_be_is_masked() -> None:
    assert Masker([SECRET]).value(deepest(SECRET)) == deepest("***")
