"""Keeping secrets out of everything that is written.

What is a secret says `core/redaction.py`. It is replaced wherever it turns up: as it is, as base64
at any alignment, and with any of its characters escaped for JSON, a URL, HTML or Markdown. Headers
that carry credentials are masked whatever they hold.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, AnyStr, Protocol, TypeAlias

import msgspec

from mcptest.core.capture import (
    AnyRecord,
    Frame,
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
from mcptest.core.redaction import SHORTEST_SECRET, is_credential_header

if TYPE_CHECKING:
    from mcptest.core.capture import Headers

MASK = "***"
_LONG_NUMBER = 10_000_000
_LARGE = 1024 * 1024
"""Bytes of a message that is masked as it is: its value would take far more than they do."""
_PERCENT = "%[0-9A-F]{2}"
_CUT = "…"
_ENDS_OF_A_MESSAGE = (b"}", b"]")
_AFTER_A_CUT = "….)]}\"' "
"""What may stand behind a text that was cut."""
_LONG_SECRET = 256
"""A longer one is looked for only where all of it is written in one way."""
_TOGETHER = 400
"""Characters of secrets in one pattern, which bounds what it takes to compile it."""
_ESCAPES = ("\\", "%", "&")


class _Pattern(Protocol):
    def sub(self, replacement: bytes, value: bytes, /) -> bytes: ...


class Masker:
    """Replaces a fixed set of secrets by `***`."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        kept = {s.strip() for s in secrets if len(s.strip()) >= SHORTEST_SECRET and _can_travel(s)}
        forms = sorted(
            {form for secret in kept for form in _forms_of(secret)}, key=len, reverse=True
        )
        self._forms = tuple(forms)
        self._raw_forms = tuple(map(_as_bytes, forms))
        self.idle = not forms
        """Nothing to replace in messages; credential headers are masked all the same."""
        self._short = tuple(sorted(one for one in kept if len(one) <= _LONG_SECRET))

    def text(self, value: str) -> str:
        value = _without_forms(value, self._forms, _CUT, MASK)
        if not self._short or not any(mark in value for mark in _ESCAPES):
            return value
        raw = value.encode("utf-8", "surrogatepass")
        masked = self._without_escaped(raw)
        return value if masked == raw else masked.decode("utf-8", "surrogatepass")

    def raw(self, value: bytes) -> bytes:
        """Any bytes, whatever they mean."""
        value = _without_forms(value, self._raw_forms, _CUT.encode(), MASK.encode())
        if not self._short or not any(mark.encode() in value for mark in _ESCAPES):
            return value
        return self._without_escaped(value)

    def _without_escaped(self, value: bytes) -> bytes:
        for pattern in self._escaped:
            value = pattern.sub(MASK.encode(), value)
        return value

    @functools.cached_property
    def _escaped(self) -> tuple[_Pattern, ...]:
        """Patterns for secrets of which any character may be escaped; made when they are needed."""
        return tuple(map(_compiled, _gathered(self._short)))

    def unfinished(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret."""
        if self.idle or text.endswith("\n"):
            return 0
        begun = (_begins_at_the_end(form, text, 1) for form in self._forms)
        return max((len(text) - at for at in begun if at >= 0), default=0)

    def is_telling(self, beginning: str) -> bool:
        """Whether so much of a secret should not be shown."""
        return len(beginning) >= SHORTEST_SECRET

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
        masked = self.raw(raw)
        if raw.rstrip()[-1:] not in _ENDS_OF_A_MESSAGE:  # it was not said to its end
            masked = _without_half_at_the_end(masked, self._raw_forms, MASK.encode())
        # As `Raw` every byte of it is looked at, and nothing is built.
        is_large = len(raw) > _LARGE
        if masked == raw or (is_large and _decoded(masked, msgspec.Raw) is not _NOT_JSON):
            return masked
        if (value := _decoded(raw)) is _NOT_JSON:
            return masked
        safe = self.value(value)
        # the masked bytes may be no JSON any more, or hold a secret in another spelling
        return masked if _decoded(masked) == safe else msgspec.json.encode(safe)

    def document(self, content: bytes) -> bytes:
        """A whole file or answer. What was JSON, also line by line, is JSON afterwards."""
        masked = content if self.idle else self.raw(content)
        if masked == content or content[:1] not in (b"{", b"["):
            return masked
        if _decoded(masked) is not _NOT_JSON:
            return masked
        if _decoded(content) is not _NOT_JSON:
            return self.message(content)
        return b"".join(map(self._line, content.splitlines(keepends=True)))

    def _line(self, line: bytes) -> bytes:
        kept = line.rstrip(b"\r\n")
        return self.message(kept) + line[len(kept) :]

    def value(self, value: Any) -> Any:
        """Mask inside strings, and long numbers; a short one is more likely an id than a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return list(map(self.value, value))
        if isinstance(value, dict):  # in no comprehension, which takes a call for each level
            return dict(zip(map(self.text, value), map(self.value, value.values()), strict=True))
        if type(value) is int and abs(value) >= _LONG_NUMBER:
            text = str(value)
            return value if self.text(text) == text else MASK
        return value

    def headers(self, headers: Headers) -> Headers:
        """Of a credential the name of the scheme stays: it says how a client identifies itself."""
        masked = []
        for name, value in headers:
            if is_credential_header(name):
                scheme, _, token = value.partition(" ")
                masked.append((name, f"{scheme} {MASK}" if token and scheme.isalpha() else MASK))
            else:
                masked.append((name, self.text(value)))
        return tuple(masked)


def _can_travel(secret: str) -> bool:
    """A lone surrogate, which a configuration file can name, is in nothing that anyone is sent."""
    try:
        secret.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


_NOT_JSON = object()


def _decoded(raw: bytes, as_type: Any = Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=as_type)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _without_forms(value: AnyStr, forms: Sequence[AnyStr], cut: AnyStr, mask: AnyStr) -> AnyStr:
    for form in forms:
        if form in value:
            value = value.replace(form, mask)
    if cut not in value:
        return value
    # Texts are cut by many, and each says so: before that, the beginning of a secret is hidden.
    parts: list[AnyStr] = value.split(cut)
    for place in range(len(parts) - 1):
        parts[place] = _without_half_at_the_end(parts[place], forms, mask)
    return cut.join(parts)


def _without_half_at_the_end(part: AnyStr, forms: Sequence[AnyStr], mask: AnyStr) -> AnyStr:
    end = part[-max(map(len, forms), default=0) :]
    for form in forms:
        if (at := _begins_at_the_end(form, end)) >= 0:
            return part[: len(part) - len(end) + at] + mask
    return part


def _begins_at_the_end(form: AnyStr, text: AnyStr, least: int = SHORTEST_SECRET + 1) -> int:
    """Where the longest beginning of a form stands that ends a text; -1: nowhere."""
    shortest = form[:least]
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
            # The characters of a base64 text that depend on the secret alone.
            first = -(-shift * 8 // 6)
            last = (shift + len(raw)) * 8 // 6
            form = encoder(b"\0" * shift + raw).decode("ascii")[first:last]
            if len(form) >= SHORTEST_SECRET:
                yield form


def _gathered(secrets: Iterable[str]) -> Iterator[str]:
    """Patterns of several secrets each."""
    together: list[str] = []
    size = 0
    for secret in secrets:
        if together and size + len(secret) > _TOGETHER:
            yield "|".join(together)
            together, size = [], 0
        together.append("".join(map(_spellings, secret)))
        size += len(secret)
    if together:
        yield "|".join(together)


def _compiled(pattern: str) -> _Pattern:
    import re2  # type: ignore[import-untyped]  # it has no types

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = 64 << 20
    compiled: _Pattern = re2.compile(pattern.encode("latin-1"), options)
    return compiled


_NAMED_IN_HTML = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_NAMED_IN_JSON = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}
_NAMED_ELSEWHERE = {" ": r"\+", "'": """'"'"'|''"""}
"""In a form, and within the quotes of a shell and of YAML."""


def _spellings(character: str) -> str:
    """A pattern for a character as it is, or escaped for JSON, a URL, HTML, Markdown or a shell, or
    for one in the other."""
    code = ord(character)
    raw = _as_bytes(character)
    units = character.encode("utf-16-be", "surrogatepass").hex()
    ways = [
        re.escape(raw.decode("latin-1")),
        "".join(rf"\\+u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4)),
        rf"\\+U(?i:{code:08x})",
        "".join(f"%(?:25)*(?i:{byte:02x})" for byte in raw),
        f"&(?:amp;)*#(?:0*{code}|[xX]0*(?i:{code:x}));",
    ]
    if code < 0x100:
        ways.append(rf"\\+x{code:02x}")
    if character in _NAMED_IN_HTML:
        ways.append(f"&(?:amp;)*{_NAMED_IN_HTML[character]};")
    if character in _NAMED_IN_JSON:
        ways.append(rf"\\+{_NAMED_IN_JSON[character]}")
    if character in _NAMED_ELSEWHERE:
        ways.append(_NAMED_ELSEWHERE[character])
    escaped = "" if character.isalnum() else r"\\*"
    return f"{escaped}(?:{'|'.join(ways)})"


# -- Records of a capture as they may be written -------------------------------------------------


def _event(masker: Masker, sse: Sse | None) -> Sse | None:
    if sse is None:
        return None
    event, identity = _maybe(masker, sse.event), _maybe(masker, sse.id)
    return msgspec.structs.replace(sse, event=event, id=identity)


def _maybe(masker: Masker, text: str | None) -> str | None:
    return None if text is None else masker.text(text)


_Masked: TypeAlias = Mapping[type, Mapping[str, Callable[[Masker, Any], Any]]]
_ALWAYS: _Masked = {
    # As this masker sees them: that of a scenario keeps the tokens that it gave out itself.
    HttpRequest: {"url": Masker.text, "headers": lambda masker, fields: masker.headers(fields)},
    HttpResponse: {"headers": lambda masker, fields: masker.headers(fields)},
}
"""What may hold secrets in each kind of record. Credential headers never keep them."""
_WITH_SECRETS: _Masked = {
    **_ALWAYS,
    Frame: {"raw": Masker.message, "sse": _event},
    Stderr: {"text": Masker.text},
    Note: {"text": Masker.text},
    Leftover: {"text": Masker.cut_text},
    Trouble: {"detail": Masker.text, "excerpt": Masker.text},
    SseEvent: {"sse": _event, "data": Masker.text, "comment": _maybe},
    Opened: {"peer": Masker.text, "server_label": Masker.text, "revision_reason": Masker.text},
}


def mask_record(record: AnyRecord, masker: Masker) -> AnyRecord:
    """The record without secrets."""
    members = (_ALWAYS if masker.idle else _WITH_SECRETS).get(type(record))
    if members is None:
        return record
    masked = {name: mask(masker, getattr(record, name)) for name, mask in members.items()}
    return msgspec.structs.replace(record, **masked)
