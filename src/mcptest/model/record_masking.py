"""Records of a capture as they may be written."""

from __future__ import annotations

import msgspec

from mcptest.model.capture import (
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
from mcptest.model.masking import Masker


def mask_record(record: AnyRecord, masker: Masker) -> AnyRecord:
    """The record without secrets. Headers that carry credentials never keep them."""
    if isinstance(record, HttpRequest):
        return msgspec.structs.replace(
            record, url=masker.text(record.url), headers=masker.headers(record.headers)
        )
    if isinstance(record, HttpResponse):
        return msgspec.structs.replace(record, headers=masker.headers(record.headers))
    if masker.idle:
        return record
    if isinstance(record, Frame):
        return msgspec.structs.replace(
            record, raw=masker.message(record.raw), sse=_event(record.sse, masker)
        )
    if isinstance(record, Stderr | Note):
        return msgspec.structs.replace(record, text=masker.text(record.text))
    if isinstance(record, Leftover):
        return msgspec.structs.replace(record, text=masker.cut_text(record.text))
    if isinstance(record, Trouble):
        return msgspec.structs.replace(
            record, detail=masker.text(record.detail), excerpt=masker.text(record.excerpt)
        )
    if isinstance(record, SseEvent):
        return msgspec.structs.replace(
            record,
            sse=_event(record.sse, masker),
            data=masker.text(record.data),
            comment=_maybe(record.comment, masker),
        )
    if isinstance(record, Opened):
        return msgspec.structs.replace(
            record,
            peer=masker.text(record.peer),
            server_label=masker.text(record.server_label),
            revision_reason=masker.text(record.revision_reason),
        )
    return record


def _event(sse: Sse | None, masker: Masker) -> Sse | None:
    if sse is None:
        return None
    return msgspec.structs.replace(sse, event=_maybe(sse.event, masker), id=_maybe(sse.id, masker))


def _maybe(text: str | None, masker: Masker) -> str | None:
    return None if text is None else masker.text(text)
