"""`mcptest compliance diff`: what moves between two revisions, as an upgrade guide."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mcptest.model.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from mcptest.rules.corpus.touched import Touched
    from mcptest.rules.corpus.version_corpus import VersionCorpus
    from mcptest.rules.corpus.version_diff import VersionDiff


def show_diff(arguments: argparse.Namespace) -> int:
    """Print the guide. That something moved is no failure: it is what was asked."""
    from mcptest.report.terminal import Style, say, say_json
    from mcptest.report.version_diff import diff_as_json, diff_as_markdown, diff_lines
    from mcptest.rules.corpus.version_diff import diff_versions

    corpora = _corpora(arguments.registry)
    diff = diff_versions(_corpus(arguments.older, corpora), _corpus(arguments.newer, corpora))
    touched = _touched(arguments.rules_from, diff)
    if arguments.json or arguments.format == "json":
        say_json(sys.stdout, diff_as_json(diff, touched))
        return ExitCode.OK
    if arguments.format == "markdown":
        lines = diff_as_markdown(diff, touched)
    else:
        lines = diff_lines(diff, touched, Style.of(sys.stdout, no_color=arguments.no_color))
    for line in lines:
        say(sys.stdout, line + "\n")
    return ExitCode.OK


def _corpora(registry: str | None) -> Path | None:
    if registry is None:
        return None
    path = Path(registry)
    return path if path.is_dir() else path.parent


def _corpus(version: str, corpora: Path | None) -> VersionCorpus:
    from mcptest.model.revision import parse_revision
    from mcptest.rules.corpus.version_corpus import corpus_of

    revision = parse_revision(version)
    corpus = corpus_of(revision, corpora)
    if corpus is None:
        raise UsageError(
            f"there is no corpus for {revision.label}",
            hint=f"it would be the folder {corpora}/{revision.label}",
        )
    return corpus


def _touched(suite: str | None, diff: VersionDiff) -> list[Touched] | None:
    if suite is None:
        return None
    from mcptest.rules.corpus.touched import touched_tests
    from mcptest.suite.compliance_block import load_compliance_block

    block = load_compliance_block(Path(suite))
    if block is None:
        raise UsageError(f"{suite} has no compliance block", hint="--rules-from takes such a suite")
    return touched_tests(block, diff)
