"""Our own stdout and stderr: nothing that is written to them holds a secret.

They take the places of `sys.stdout` and `sys.stderr` while a command runs, so whoever writes there
needs to know nothing of it. Servers of ours and proxies speak to their client through the
descriptor, and every byte of that stays as it is.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TextIO, cast

from mcptest.model.redaction import redaction


class MaskedStream:
    """A stream for text that hides secrets, also one that comes in several pieces."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._held = ""
        """The end of what was written, as long as it may be the beginning of a secret."""
        self._flushed = ""
        """What had to be shown of such a beginning: too little to tell anything."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def buffer(self) -> BinaryIO:
        self.release()
        return cast("BinaryIO", MaskedBytes(self._stream.buffer))

    def write(self, text: str) -> int:
        if redaction.idle:
            return self._stream.write(text)
        masker = redaction.masker
        whole = masker.text(self._flushed + self._held + text)
        fresh = whole.removeprefix(self._flushed)
        unfinished = masker.unfinished(whole)
        if unfinished <= len(fresh):
            self._flushed = ""
        held = min(unfinished, len(fresh))
        self._held = fresh[len(fresh) - held :]
        self._stream.write(fresh[: len(fresh) - held])
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Whoever looks sees it all, but for what looks like half a secret."""
        if self._held and not redaction.masker.is_telling(self._flushed + self._held):
            self._flushed += self._held
            self.release()
        self._stream.flush()

    def release(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._stream.write(held)


class MaskedBytes:
    """The same for bytes, which are written as whole documents."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, content: bytes) -> int:
        self._stream.write(redaction.document(bytes(content)))
        return len(content)


@contextlib.contextmanager
def masked_streams() -> Iterator[None]:
    """Everything that is printed meanwhile is masked."""
    before = sys.stdout, sys.stderr
    ours = MaskedStream(sys.stdout), MaskedStream(sys.stderr)
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", ours)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in ours:
            with contextlib.suppress(OSError, ValueError):  # closed; what matters was flushed
                stream.release()
