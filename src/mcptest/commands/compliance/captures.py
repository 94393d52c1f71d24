"""`mcptest compliance invariants`: captures judged by the rules over whole sessions."""

from __future__ import annotations

import argparse
from functools import partial

from mcptest.commands.command_line import options_again, repeat_line
from mcptest.commands.reporting import conclude
from mcptest.core.errors import UsageError
from mcptest.core.revision import parse_revision
from mcptest.report.verdicts import build_report
from mcptest.rules.catalogue import all_rules, find_rule
from mcptest.rules.composition import compose
from mcptest.rules.declaration import Rule
from mcptest.rules.judge import judge
from mcptest.transport.capture_file import open_capture


def judge_captures(arguments: argparse.Namespace) -> int:
    revision = parse_revision(arguments.spec_version) if arguments.spec_version else None
    rules = _chosen_rules(arguments.rule)
    sources = (source for path in arguments.capture for source in open_capture(path))
    sessions = [judge(source, rules, revision) for source in sources]
    hazards = compose(sessions, arguments.separate_transports)
    report = build_report(sessions, hazards, "compliance invariants", strict=arguments.strict)
    nothing = "nothing to judge: no rule was observed in the capture"
    return conclude(arguments, report, repeat=partial(_again, arguments), nothing=nothing)


def _again(arguments: argparse.Namespace) -> str:
    asked = ("capture", "separate_transports", "spec_version", "rule", "strict")
    words = ["mcptest", "compliance", "invariants", *options_again(arguments, *asked)]
    return repeat_line(words, arguments)


def _chosen_rules(names: list[str] | None) -> list[Rule]:
    if not names:
        return all_rules()
    chosen = [find_rule(name) for name in names]
    for rule in chosen:
        if not isinstance(rule, Rule):
            raise UsageError(
                f"{rule.id} judges several sessions together and always runs",
                hint="--rule takes rules that judge one session",
            )
    return [rule for rule in chosen if isinstance(rule, Rule)]
