"""A corpus: every rule that one revision has, by id."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcptest.model.revision import Revision, revision_of_label
from mcptest.rules.corpus.load import (
    SHIPPED,
    load_rows,
    registry_beside,
    session_rules_in,
)
from mcptest.rules.corpus.rows import CorpusRule


@dataclass(frozen=True, slots=True)
class VersionCorpus:
    """The rules of one revision. `version` is what its folder is called."""

    version: str
    rules: Mapping[str, CorpusRule]
    about: str = ""
    """What the revision changed, in a sentence or two."""

    @property
    def revision(self) -> Revision | None:
        return revision_of_label(self.version)

    @classmethod
    def load_dir(cls, version: str, path: Path | str, *, extending: bool = True) -> VersionCorpus:
        """The rules that are written in a folder, and by default in those that it extends.

        The registry next to the folder, where there is one, says what they are called and how
        much they weigh. Raises SuiteError with file, line and column for anything wrong.
        """
        folder = Path(path)
        registry = registry_beside(folder)
        known = None if registry is None else registry.keys()
        loaded = load_rows(folder, known, extending=extending)
        revision = revision_of_label(version)
        entries = registry or {}
        return cls(
            version,
            {
                name: CorpusRule(name, row, entries.get(name), None, revision)
                for name, row in loaded.rows.items()
            },
            loaded.about,
        )


def corpus_of(revision: Revision, corpora: Path | None = None) -> VersionCorpus | None:
    """The complete corpus of a revision: its folder, and the rules over whole sessions.

    None when there is no folder for it. `corpora` is the folder of the registry, ours by default.
    """
    if corpora is None or corpora == SHIPPED:
        return _shipped(revision)
    return _complete(revision, corpora)


@functools.lru_cache(maxsize=8)
def _shipped(revision: Revision) -> VersionCorpus | None:
    return _complete(revision, SHIPPED)


def _complete(revision: Revision, corpora: Path) -> VersionCorpus | None:
    folder = corpora / revision.label
    if not folder.is_dir():
        return None
    corpus = VersionCorpus.load_dir(revision.label, folder)
    registry = registry_beside(folder) or {}
    found = {**dict(session_rules_in(revision, registry)), **corpus.rules}
    return VersionCorpus(revision.label, dict(sorted(found.items())), corpus.about)
