"""The full form of a capture: one record per line of JSON, in the order in which things happened.

The bytes of a message that is JSON on one line are written as they are, as member `message`, so
white space, key order and duplicate keys survive. Anything else is kept as `text`, or as `base64`
when it is not UTF-8. No file is opened here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from mcptest.model.capture import (
    CAPTURE_FORMAT,
    AnyRecord,
    Closed,
    Exited,
    Frame,
    HttpRequest,
    HttpResponse,
    Leftover,
    Note,
    Opened,
    Record,
    Sender,
    Sse,
    SseEvent,
    Stderr,
    StreamEnd,
    Trouble,
)
from mcptest.model.errors import UsageError
from mcptest.model.limits import DEFAULT_LIMITS
from mcptest.model.show import show
from mcptest.wire.jsontext import is_deeper

_encode = msgspec.json.Encoder().encode
_decode_any = msgspec.json.Decoder().decode
_check_json = msgspec.json.Decoder(msgspec.Raw).decode
_MESSAGE_FROM = {"client": b',"sender":"client",', "server": b',"sender":"server",'}


class _FrameLine(Record, tag="message", frozen=True, kw_only=True):
    """A Frame as it stands in the file: exactly one of the last three members."""

    sender: Sender
    stream: int | None = None
    sse: Sse | None = None
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    text: str | None = None
    base64: str | None = None


Line: TypeAlias = (
    Opened
    | _FrameLine
    | HttpRequest
    | HttpResponse
    | SseEvent
    | StreamEnd
    | Leftover
    | Stderr
    | Exited
    | Trouble
    | Note
    | Closed
)
_decode_line = msgspec.json.Decoder(Line).decode


def encode_record(record: AnyRecord) -> bytes:
    """One line with its newline."""
    if type(record) is not Frame:
        return _encode(record) + b"\n"
    raw = record.raw
    middle = _MESSAGE_FROM[record.sender]
    if record.stream is not None or record.sse is not None:
        middle = _with_stream(record)
    if raw[:1] == b"{" and raw[-1:] == b"}" and b"\n" not in raw and _is_json(raw):
        return b'{"kind":"message","t":%r%b"message":%b}\n' % (record.t, middle, raw)
    return b'{"kind":"message","t":%r%b%b}\n' % (record.t, middle, _other_than_object(raw))


def encode_records(records: Iterable[AnyRecord]) -> list[bytes]:
    """Many records, each as its line. Those of one moment share the work on its time."""
    lines: list[bytes] = []
    keep = lines.append
    moment, begin = -1.0, b""
    for record in records:
        if type(record) is not Frame or record.stream is not None or record.sse is not None:
            keep(encode_record(record))
            continue
        if record.t != moment:
            moment = record.t
            begin = b'{"kind":"message","t":%r' % moment
        raw = record.raw
        sender = _MESSAGE_FROM[record.sender]
        if raw[:1] == b"{" and raw[-1:] == b"}" and b"\n" not in raw and _is_json(raw):
            # Half the time of formatting it, and one copy of what may be large.
            keep(b"".join((begin, sender, b'"message":', raw, b"}\n")))
        else:
            keep(b"%b%b%b}\n" % (begin, sender, _other_than_object(raw)))
    return lines


def decode_records(lines: Iterable[bytes], source: str = "capture") -> Iterator[AnyRecord]:
    """The records of a full capture. Only a last line without its newline may be torn.

    A writer that was killed leaves such a line behind; everything before it is still good. Any
    other line that can't be read raises UsageError with its number.
    """
    for number, line in enumerate(lines, start=1):
        try:
            record = _decode_line(line)
        except (ValueError, RecursionError) as error:
            if not line.endswith(b"\n") and not _is_whole_json(line):
                return  # torn by a crash of the writer
            if not line.strip():
                continue
            raise _unreadable(source, number, line, error) from None
        if type(record) is _FrameLine:
            yield _frame_of(record, source, number)
        else:
            if type(record) is Opened and record.format > CAPTURE_FORMAT:
                raise UsageError(
                    f"{source}:{number}: capture format {record.format} is newer than this mcptest",
                    hint=f"this version reads format {CAPTURE_FORMAT} and older",
                )
            yield record


def _with_stream(record: Frame) -> bytes:
    place = b"" if record.stream is None else b'"stream":%d,' % record.stream
    event = b"" if record.sse is None else b'"sse":' + _encode(record.sse) + b","
    return _MESSAGE_FROM[record.sender] + place + event


def _is_json(raw: bytes) -> bool:
    """Whether a reader of the line will find exactly these bytes again."""
    if is_deeper(raw, DEFAULT_LIMITS.depth):
        return False
    try:
        _check_json(raw)  # looks at every byte, builds nothing
        return raw.isascii() or bool(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return False


def _other_than_object(raw: bytes) -> bytes:
    """A batch is embedded too; what is no JSON on one line is quoted."""
    if raw[:1] == b"[" and raw[-1:] == b"]" and b"\n" not in raw and _is_json(raw):
        return b'"message":' + raw
    try:
        return b'"text":' + _encode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return b'"base64":"' + base64.b64encode(raw) + b'"'


def _frame_of(line: _FrameLine, source: str, number: int) -> Frame:
    raw = line.message
    if raw is not msgspec.UNSET:
        content = bytes(raw)
    elif line.text is not None:
        content = line.text.encode("utf-8")
    elif line.base64 is not None:
        try:
            content = base64.b64decode(line.base64, validate=True)
        except (binascii.Error, ValueError):
            raise UsageError(f"{source}:{number}: the member base64 is not base64") from None
    else:
        raise UsageError(
            f"{source}:{number}: a message record without its message",
            hint="expected one of the members message, text and base64",
        )
    return Frame(t=line.t, sender=line.sender, raw=content, stream=line.stream, sse=line.sse)


def _is_whole_json(line: bytes) -> bool:
    try:
        _decode_any(line)
    except (ValueError, RecursionError):
        return False
    return True


def _unreadable(source: str, number: int, line: bytes, error: Any) -> UsageError:
    reason = "nested too deeply" if isinstance(error, RecursionError) else show(str(error), 160)
    return UsageError(
        f"{source}:{number}: not a record of a capture: {reason}",
        hint=f"the line begins {show(line, 80)!r}; see docs/capture-format.md",
    )
