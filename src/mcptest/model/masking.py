"""Keeping secrets out of everything that is written.

Names decide what is a secret: those of variables, headers and options of a command
(`is_secret_name`, the one list). Its value is replaced wherever it turns up, also escaped for JSON
or a URL, or as base64 at any alignment, and headers that carry credentials are masked whatever
they hold.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from mcptest.model.capture import (
    AnyRecord,
    Frame,
    Headers,
    HttpRequest,
    HttpResponse,
    Leftover,
    Note,
    Opened,
    Sse,
    SseEvent,
    Stderr,
    Trouble,
)

MASK = "***"
_LONG_NUMBER = 10_000_000
_PERCENT = "%[0-9A-F]{2}"
_AFTER_A_CUT = "….)]}\"' "
"""What may stand behind a text that was cut."""
SHORTEST_SECRET = 4
"""A shorter value is no secret, and masking it would blot out half of the text."""
_LONG_FORM = 200
"""From here on each form is looked for on its own. As one of many in a pattern, a megabyte of text
takes seconds to compile, and at every place of a message that begins like it all of it is tried."""


class Masker:
    """Replaces a fixed set of secrets by `***`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        kept = {s.strip() for s in secrets if len(s.strip()) >= SHORTEST_SECRET and _can_travel(s)}
        forms = sorted(
            {form for secret in kept for form in _forms_of(secret)}, key=len, reverse=True
        )
        self._forms = tuple(forms)
        self.idle = not forms
        """Nothing to replace in messages; credential headers are masked all the same."""
        self._long = tuple(form for form in forms if len(form) > _LONG_FORM)
        self._long_bytes = tuple(map(_as_bytes, self._long))
        pattern = "|".join(map(re.escape, forms[len(self._long) :]))
        self._short = re.compile(pattern) if pattern else None
        self._short_bytes = re.compile(_as_bytes(pattern)) if pattern else None

    def text(self, value: str) -> str:
        for form in self._long:
            value = value.replace(form, MASK)
        return self._short.sub(MASK, value) if self._short is not None else value

    def _raw(self, value: bytes) -> bytes:
        for form in self._long_bytes:
            value = value.replace(form, MASK.encode())
        return value if self._short_bytes is None else self._short_bytes.sub(MASK.encode(), value)

    def cut_text(self, value: str) -> str:
        """A text that others may have cut: also half a secret at the end of a line is hidden."""
        if self.idle:
            return value
        return "\n".join(map(self._without_half_a_secret, self.text(value).split("\n")))

    def _without_half_a_secret(self, line: str) -> str:
        kept = line.rstrip(_AFTER_A_CUT)
        for form in self._forms:
            if (at := _begins_at_the_end(form, kept)) >= 0:
                return kept[:at] + MASK + line[len(kept) :]
        return line

    def message(self, raw: bytes) -> bytes:
        """A message's bytes. One that was JSON is JSON afterwards."""
        if self.idle:
            return raw
        masked = self._raw(raw)
        # JSON can spell a character in many ways, all of which hold a backslash.
        if masked == raw and b"\\" not in raw:
            return raw
        try:
            value = msgspec.json.decode(raw)
        except (ValueError, RecursionError):
            return masked
        safe = self._value(value)
        if _still_means(masked, safe):
            return masked
        return msgspec.json.encode(safe)

    def _value(self, value: Any) -> Any:
        """Mask inside strings, and long numbers; a short one is more likely an id than a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self._value(item) for key, item in value.items()}
        if type(value) is int and abs(value) >= _LONG_NUMBER:
            text = str(value)
            return value if self.text(text) == text else MASK
        return value

    def headers(self, headers: Headers) -> Headers:
        return tuple(
            (name, _masked_credential(value))
            if is_credential_header(name)
            else (name, self.text(value))
            for name, value in headers
        )

    def record(self, record: AnyRecord) -> AnyRecord:
        """The record as it may be written."""
        if isinstance(record, HttpRequest):
            return msgspec.structs.replace(
                record, url=self.text(record.url), headers=self.headers(record.headers)
            )
        if isinstance(record, HttpResponse):
            return msgspec.structs.replace(record, headers=self.headers(record.headers))
        if self.idle:
            return record
        if isinstance(record, Frame):
            return msgspec.structs.replace(
                record, raw=self.message(record.raw), sse=self._event(record.sse)
            )
        if isinstance(record, Stderr | Note):
            return msgspec.structs.replace(record, text=self.text(record.text))
        if isinstance(record, Leftover):
            return msgspec.structs.replace(record, text=self.cut_text(record.text))
        if isinstance(record, Trouble):
            return msgspec.structs.replace(
                record, detail=self.text(record.detail), excerpt=self.text(record.excerpt)
            )
        if isinstance(record, SseEvent):
            return msgspec.structs.replace(
                record,
                sse=self._event(record.sse),
                data=self.text(record.data),
                comment=self._maybe(record.comment),
            )
        if isinstance(record, Opened):
            return msgspec.structs.replace(
                record,
                peer=self.text(record.peer),
                server_label=self.text(record.server_label),
                revision_reason=self.text(record.revision_reason),
            )
        return record

    def _event(self, sse: Sse | None) -> Sse | None:
        if sse is None:
            return None
        return msgspec.structs.replace(sse, event=self._maybe(sse.event), id=self._maybe(sse.id))

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_SECRET_WORDS = frozenset(
    _listed(
        "apikey auth authorization bearer cookie cookies cred creds credential credentials dpop "
        "dsn jwt key keys otp pass passphrase passwd password passwords pat private pw pwd secret "
        "secrets session sid signature token tokens webhook"
    )
)
"""A name with one of these words is that of a secret. The only list of its kind."""
_SECRET_PARTS = re.compile(
    "apikey|accesskey|privatekey|token|secret|passw|passphrase|credential|connectionstring"
)
"""The same where words are written together: PGPASSWORD, accessToken."""
_ABOUT_A_SECRET = frozenset(
    _listed(
        "algorithm audience count desktop dir directory disabled enabled endpoint expires expiry "
        "file folder home host issuer length limit max method min mode name path port prefix "
        "provider scheme scope scopes size sock socket timeout ttl type uri url user username"
    )
)
"""A name that ends with one of these says where a secret is or how it is used: TOKEN_URL."""
_NO_SECRETS = frozenset(
    _listed("PWD DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION MAX_TOKENS SESSION_MANAGER")
)
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_PASSWORD_IN_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@\s:]*:([^/?#@\s]+)@")
_SHORT_WORD = 8
_SHORT_NUMBER = 8
_ORDINARY = frozenset(
    _listed(
        "changeme default development disabled localhost password placeholder postgres production "
        "undefined"
    )
)


def is_secret_name(name: str) -> bool:
    """Whether a variable, a header or an option of this name holds a secret."""
    if name.upper() in _NO_SECRETS:
        return False
    words = [word.lower() for word in _BETWEEN_WORDS.split(name) if word]
    if not words or (words[-1] in _ABOUT_A_SECRET and "webhook" not in words):
        return False
    return not _SECRET_WORDS.isdisjoint(words) or bool(_SECRET_PARTS.search("".join(words)))


def is_credential_header(name: str) -> bool:
    """Headers of MCP repeat what the message says, and those of CORS grant something."""
    return not name.lower().startswith(("mcp-", "access-control-")) and is_secret_name(name)


def secrets_of_environment(env: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are secrets by their name, and passwords within URLs."""
    for name, value in env.items():
        if "://" in value and (found := _PASSWORD_IN_URL.match(value)):
            yield value
            yield found[1]
        elif is_secret_name(name) and not is_ordinary(value):
            yield value


def secrets_of_command(words: Sequence[str]) -> dict[str, str]:
    """What stands behind an option with the name of a secret (`--api-key X` or `--api-key=X`), and
    that name."""
    found = {}
    for word, following in pairwise((*words, "")):
        option, assigned, value = word.partition("=")
        if not option.startswith("-") or not is_secret_name(option):
            continue
        value = value if assigned else following
        if not is_ordinary(value) and (assigned or not value.startswith("-")):
            found[value] = option.lstrip("-")
    return found


def is_ordinary(value: str) -> bool:
    """Whether it is a word or number of everyday use. To replace it everywhere hides nothing worth
    hiding, and changes what a message says and with it the verdict."""
    if value.isascii() and value.isalpha() and value in (value.lower(), value.upper()):
        return len(value) < _SHORT_WORD or value.lower() in _ORDINARY
    return len(value) < SHORTEST_SECRET or (value.isdigit() and len(value) < _SHORT_NUMBER)


def secrets_of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """What to hide of the headers that are given for a server: those with the name of a secret."""
    for name, value in headers.items():
        if is_credential_header(name):
            yield from (one for one in secrets_of_header(value) if not is_ordinary(one))


def secrets_of_header(value: str) -> Iterator[str]:
    """What to hide of a credential: the whole value, and the token behind a scheme's name."""
    yield value
    scheme, _, token = value.partition(" ")
    if token and scheme.isalpha():
        yield token
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            pair = base64.b64decode(token, validate=True).decode("utf-8")
            yield pair
            yield pair.partition(":")[2]


def variable_of_header(name: str) -> str:
    """The variable that stands for the value of a header wherever that must not be written."""
    return "MCP_" + "_".join(word for word in _BETWEEN_WORDS.split(name) if word).upper()


def _masked_credential(value: str) -> str:
    """Keep the name of the scheme, which says how the client meant to identify itself."""
    scheme, separator, token = value.partition(" ")
    return f"{scheme} {MASK}" if separator and token and scheme.isalpha() else MASK


def _can_travel(secret: str) -> bool:
    """A lone surrogate, which a configuration file can name, is in nothing that anyone is sent."""
    try:
        secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _still_means(masked: bytes, safe: Any) -> bool:
    """Whether the masked bytes are JSON and hold no secret in another spelling."""
    try:
        return bool(msgspec.json.decode(masked) == safe)
    except (ValueError, RecursionError):
        return False


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _begins_at_the_end(form: str, text: str) -> int:
    """Where the longest beginning of a form stands that ends a text; -1: nowhere."""
    shortest = form[: SHORTEST_SECRET + 1]
    at = text.find(shortest, max(0, len(text) - len(form) + 1))
    while at >= 0 and not form.startswith(text[at:]):
        at = text.find(shortest, at + 1)
    return at


@functools.lru_cache(maxsize=64)
def _forms_of(secret: str) -> tuple[str, ...]:
    """A run makes a masker for each of its conversations, nearly always of the same secrets."""
    return tuple(_forms(secret))


def _forms(secret: str) -> Iterator[str]:
    import json  # most runs have no secrets
    from urllib.parse import quote, quote_plus

    yield secret
    for escaped in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        yield escaped[1:-1]
        yield escaped[1:-1].replace("/", "\\/")
        yield json.dumps(escaped[1:-1], ensure_ascii=False)[1:-1]
    raw = secret.encode("utf-8", "surrogateescape")
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield encoded
        yield re.sub(_PERCENT, lambda match: match.group().lower(), encoded)
    for shift in range(3):
        for encoder in (base64.b64encode, base64.urlsafe_b64encode):
            form = _aligned(encoder(b"\0" * shift + raw).decode("ascii"), shift, len(raw))
            if len(form) >= SHORTEST_SECRET:
                yield form


def _aligned(encoded: str, shift: int, length: int) -> str:
    """The characters of a base64 text that depend on the secret alone."""
    first = -(-shift * 8 // 6)
    last = (shift + length) * 8 // 6
    return encoded[first:last]
