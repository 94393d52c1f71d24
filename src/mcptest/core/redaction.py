"""The secrets that this process was given, for whoever writes something.

There is one set of them for the process. Whatever gives us a secret tells so here: our environment,
our command line (`commands/app.py`) and each server (`transport/target.py`). Whatever writes asks
here: the recorder, our own streams (`commands/output.py`) and everything that writes a file
(`transport/files.py`). So neither a new command nor a new report has to remember it.

What the secrets are is found out when something is written, and not before.
"""

from __future__ import annotations

from _thread import allocate_lock  # as `threading.Lock`, which is not for this package
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mcptest.core.masking import Masker

Source: TypeAlias = Callable[[], Iterable[str]]


class Redaction:
    """Gathers secrets, and masks what is written."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._given: object = None
        self._secrets: set[str] = set()
        self._masker: Masker | None = None
        self._lock = allocate_lock()

    def learn(self, source: Source, given: object = None) -> None:
        """Tell where secrets come from. It is asked before anything else is written.

        `given` is what it depends on: of ten thousand tests on one server, the first one tells.
        """
        if given is None or given != self._given:
            self._given = given
            self._sources.append(source)

    def forget(self) -> None:
        """Begin anew, as a process of its own would."""
        self._sources, self._given, self._secrets, self._masker = [], None, set(), None

    @property
    def secrets(self) -> frozenset[str]:
        """Everything that is known by now."""
        if self._sources:
            with self._lock:
                self._ask()
        return frozenset(self._secrets)

    def _ask(self) -> None:
        sources = self._sources.copy()
        found = {secret for source in sources for secret in source()}
        if not found <= self._secrets:
            self._secrets = self._secrets | found
            self._masker = None
        del self._sources[: len(sources)]  # not before: other threads write meanwhile

    @property
    def idle(self) -> bool:
        """Whether there is nothing to hide."""
        if self._sources:
            with self._lock:
                self._ask()
        return not self._secrets

    @property
    def masker(self) -> Masker:
        """Hides everything that is known by now."""
        masker = self._masker
        if masker is not None and not self._sources:
            return masker
        from mcptest.core.masking import Masker

        with self._lock:
            self._ask()
            self._masker = self._masker or Masker(self._secrets)
            return self._masker

    def text(self, value: str) -> str:
        """A text as it may be shown."""
        return value if self.idle else self.masker.text(value)

    def value(self, value: Any) -> Any:
        """JSON as it may be told."""
        return value if self.idle else self.masker.value(value)

    def document(self, content: bytes) -> bytes:
        """The content of a file as it may be written."""
        return content if self.idle else self.masker.document(content)


redaction = Redaction()
"""There is one process, so there is one of these."""
