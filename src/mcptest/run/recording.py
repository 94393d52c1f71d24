"""Recording a tour: the client, the recorder and the capture's final form, held together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.model.capture import TransportName
from mcptest.model.deadline import Deadline
from mcptest.model.errors import McptestError, UsageError
from mcptest.model.events import Event, RecordingSummary
from mcptest.model.masking import Masker
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision
from mcptest.peer.client import Client
from mcptest.run.tour import NO_WISHES, Wishes, tour
from mcptest.transport.files import is_special, replace_file
from mcptest.transport.recorder import Recorder
from mcptest.transport.target import Target, reach_of

Form: TypeAlias = Literal["full", "exchanges"]


class Recording:
    """One server, toured and recorded. Read `events` to the end, then ask for the summary."""

    def __init__(
        self,
        target: Target,
        path: Path,
        *,
        form: Form = "full",
        revision: Revision | None = None,
        timeout: float = 30.0,
        startup: float = 30.0,
        wishes: Wishes = NO_WISHES,
    ) -> None:
        self.began = False
        self._target = target
        self._path = path
        self._form = form
        self._revision = revision
        self._timeout = timeout
        self._startup = startup
        self._wishes = wishes
        self._recorder: Recorder | None = None

    def events(self) -> Generator[Event, None, None]:
        """Drive the tour. Raises PeerError when the server can't be reached or is gone."""
        self._recorder = recorder_for(self._target, self._path, self._form)
        self._recorder.spare_older = True  # until the session has begun
        try:
            with self._recorder as recorder:
                yield from self._drive(self._client(recorder), recorder)
        finally:
            if self._form == "exchanges":
                settle_exchanges(self._recorder, self._path)

    def _drive(self, client: Client, recorder: Recorder) -> Iterator[Event]:
        try:
            client.connect(Deadline.after(self._startup))
            self.began = True
            recorder.spare_older = False
            yield from tour(client, self._wishes)
        finally:
            client.close()

    def _client(self, recorder: Recorder) -> Client:
        target = self._target

        def began(way: TransportName, reason: str) -> None:
            recorder.begin(
                label=target.label,
                transport=way,
                peer=target.peer,
                spec_version=self._revision.value if self._revision else "auto",
                revision_reason=reason,
            )

        return Client(
            reach=reach_of(target),
            revision=self._revision,
            timeout=self._timeout,
            before_waiting=recorder.flush,
            sink=recorder,
            began=began,
        )

    def summary(self) -> RecordingSummary:
        recorder = self._recorder
        if recorder is None:
            return RecordingSummary(self._path, 0, written=False)
        return RecordingSummary(
            recorder.written_to if recorder.error is not None else self._path,
            recorder.messages,
            written=recorder.kept,
            problem=_problem_of(recorder),
            older_kept=recorder.spare_older and not recorder.kept and self._path.is_file(),
        )


def _problem_of(recorder: Recorder) -> str:
    if recorder.error is not None:
        return str(recorder.error.strerror)
    if recorder.dropped:
        return f"{recorder.dropped} records did not fit under the size limit of a capture"
    return ""


def masker_for(target: Target) -> Masker:
    return redaction.masker


def recorder_for(target: Target, path: Path, form: Form) -> Recorder:
    """The public form is made from a full capture that is written beside it first."""
    return Recorder(path if form == "full" else _full_beside(path), masker=masker_for(target))


def _full_beside(path: Path) -> Path:
    if path.is_dir():
        raise UsageError(f"can't write the capture {path}: it is a folder")
    if not is_special(path):
        return path.with_name(f".{path.name}.recording")
    return Path(tempfile.gettempdir(), f"mcptest-{os.urandom(8).hex()}.recording")


def settle_exchanges(recorder: Recorder, path: Path) -> None:
    """Write the public form of what was recorded, then remove the full form.

    A capture that is not complete stays in its full form, which says where it ends.
    """
    if not recorder.kept or recorder.error is not None:
        return
    if recorder.spare_older and path.is_file():
        recorder.kept = False
    else:
        try:
            _write_exchanges(recorder.path, path)
        except UsageError as error:
            # No usage error: the session was had.
            hint = f"what was recorded is in {recorder.path}"
            raise McptestError(error.message, hint=hint) from None
    recorder.path.unlink()


def _write_exchanges(full: Path, path: Path) -> None:
    from mcptest.transport.capture_file import open_capture
    from mcptest.wire.exchanges import exchanges_of

    sessions = [
        exchanges_of(record for _, record in source.records) for source in open_capture(str(full))
    ]
    answered = [each for each in sessions if _has_answers(each)]
    # A probe that drove the server away is no session that anyone had.
    kept = answered or sessions[-1:]
    document = kept[0] if len(kept) == 1 else kept
    replace_file(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")


def _has_answers(session: Mapping[str, Any]) -> bool:
    return any("response" in exchange for exchange in session["exchanges"])
