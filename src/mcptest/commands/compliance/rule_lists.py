"""`mcptest compliance rules` and `diff`: what the corpora say, without a server or a capture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.revision import parse_revision
from mcptest.report.rules import all_listed_rules, rules_as_json, rules_as_lines
from mcptest.report.terminal import Style, say, say_json
from mcptest.report.upgrade_guide import diff_as_json, diff_as_markdown, diff_lines
from mcptest.rules.composition import COMPOSITION_RULES, CompositionRule
from mcptest.rules.corpus.reader import VersionCorpus, corpus_of
from mcptest.rules.corpus.version_diff import Touched, diff_versions, touched_tests
from mcptest.suite.lane_blocks import load_compliance_block


def list_rules(arguments: argparse.Namespace) -> int:
    revision = parse_revision(arguments.spec_version) if arguments.spec_version else None
    rules = all_listed_rules(revision, arguments.side)
    together: list[CompositionRule] = [] if arguments.side else list(COMPOSITION_RULES.values())
    if arguments.json or arguments.format == "json":
        say_json(sys.stdout, rules_as_json(rules, together, revision))
        return ExitCode.OK
    style = Style.of(sys.stdout, no_color=arguments.no_color)
    for line in rules_as_lines(rules, together, revision, style):
        say(sys.stdout, line + "\n")
    return ExitCode.OK


# -- `mcptest compliance diff` -----------------------------------------------------------------


def show_diff(arguments: argparse.Namespace) -> int:
    """Print the guide. That something moved is no failure: it is what was asked."""
    registry = Path(arguments.registry) if arguments.registry is not None else None
    corpora = registry if registry is None or registry.is_dir() else registry.parent
    diff = diff_versions(_corpus(arguments.older, corpora), _corpus(arguments.newer, corpora))
    touched: list[Touched] | None = None
    if arguments.rules_from is not None:
        block = load_compliance_block(Path(arguments.rules_from))
        if block is None:
            said = f"{arguments.rules_from} has no compliance block"
            raise UsageError(said, hint="--rules-from takes a suite with compliance:")
        touched = touched_tests(block, diff)
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


def _corpus(version: str, corpora: Path | None) -> VersionCorpus:
    revision = parse_revision(version)
    corpus = corpus_of(revision, corpora)
    if corpus is None:
        raise UsageError(
            f"there is no corpus for {revision.label}",
            hint=f"expected the folder {corpora}/{revision.label}",
        )
    return corpus
