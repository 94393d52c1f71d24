"""`mcptest compliance`: judge servers and captures by the specification, and list the rules."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import (
    add_common_options,
    add_file_options,
    add_format_option,
    add_max_time,
    add_report_files,
    add_server_options,
    add_strict_option,
)

_FORMATS = ("text", "json", "markdown", "md", "html", "agent", "tap")
_FILES = ("json_file", "markdown", "html", "junit")


_DESCRIPTION = """\
Judge servers and captures by the rules of the specification; for the scenarios
of the official suite there is mcptest conformance. Every rule comes with its
sentence, the record that proves it, and what to do about it. Nothing passes
that was not seen.
"""
_EPILOG = """\
examples:
  mcptest compliance run --server demo
  mcptest compliance invariants --capture session.jsonl
  mcptest compliance diff 2025-11-25 2026-07-28

mcptest compliance ACTION --help tells more of each

exit codes:
  0    conforms
  1    a rule is broken
  2    bad options
  3    the server could not be reached or started
  4    nothing was judged

see also: mcptest conformance, mcptest doctor, mcptest explain,
          docs/compliance/running.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    configure_run(commands.add_parser("run", help="judge a server"))
    _configure_invariants(commands.add_parser("invariants", help="judge captures"))
    _configure_rules(commands.add_parser("rules", help="list the rules"))
    _configure_diff(commands.add_parser("diff", help="what a move to a revision changes"))


_RUN_DESCRIPTION = """\
Judge a server by the specification: probe it, capture everything, judge every
rule of the revision's corpus, grade it. Only tools that say they just read
are called, unless you allow more. --spec-version all judges by every revision
that the server speaks.
"""
_RUN_EPILOG = """\
examples:
  mcptest compliance run --server demo
  mcptest compliance run --server "npx my-server /data" --spec-version all
  mcptest compliance run --server http://127.0.0.1:3001/mcp --html report.html
  mcptest compliance run --from-suite compliance.yml --junit results.xml
  mcptest compliance run --server demo --rule PROTO-002 --verbose
  mcptest compliance run --baseline known.yml --min-grade A- -- node server.js

exit codes:
  0    conforms
  1    a MUST is broken or a gate failed; with --strict also a broken SHOULD
  2    could not start
  3    the server could not be reached or started
  4    nothing was observed
  130  interrupted; what was judged by then is reported

see also: mcptest explain, mcptest doctor, mcptest conformance server,
          docs/compliance/running.md
"""


def configure_run(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _RUN_DESCRIPTION, _RUN_EPILOG
    parser.add_argument(
        "--from-suite", type=Path, metavar="FILE", help="judge as the compliance block of it says"
    )
    add_server_options(parser)
    add_max_time(parser.add_argument)
    _add_judging_options(parser)
    _add_gate_options(parser)
    _add_reports(parser)
    add_common_options(parser)


def _add_judging_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is judged")
    add = group.add_argument
    add("--rule", action="append", default=[], metavar="ID", help="only this rule; may repeat")
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool too, although it does not say that it only reads; may repeat",
    )
    add(
        "--fixture",
        action="append",
        default=[],
        metavar="NAME=TOOL",
        help="which tool, prompt or resource of the server is this fixture; may repeat",
    )
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--capture", type=Path, metavar="DIR", help="keep what went over the wire")


def _add_gate_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is good enough")
    add = group.add_argument
    add("--strict", action="store_true", help="a broken SHOULD fails as well")
    add("--min-grade", metavar="A-", help="fail below this grade")
    add("--baseline", type=Path, metavar="FILE", help="rules that are known to fail, with reasons")
    add("--update-baseline", action="store_true", help="write what fails now into --baseline")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reports")
    add = group.add_argument
    add_format_option(add, _FORMATS)
    add("--json", action="store_true", help="the same as --format json")
    add_report_files(add, _FILES)
    add_file_options(add)
    add("--save-scorecard", type=Path, metavar="FILE", help="keep the grade, for grade_delta")
    add("--server-label", default="", metavar="S", help="what the scorecard calls the server")
    add_strict_option(add)


_INVARIANTS_DESCRIPTION = """\
Judge recorded sessions by the rules that hold for a whole session, and
several of them together by what goes wrong between servers. No server is
contacted: the same capture always gives the same verdicts.
"""
_INVARIANTS_EPILOG = """\
examples:
  mcptest compliance invariants --capture session.jsonl
  mcptest compliance invariants --capture a.jsonl --capture b.jsonl --json
  mcptest compliance invariants --capture session.jsonl --rule INV-003 --verbose

exit codes:
  0    nothing that counts is broken
  1    a MUST rule is broken, or several servers get in each other's way
  2    bad options, or the file can't be read as a capture
  4    there was nothing to judge

see also: mcptest record, mcptest explain, mcptest report,
          docs/capture-format.md
"""


def _configure_invariants(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _INVARIANTS_DESCRIPTION, _INVARIANTS_EPILOG
    add = parser.add_argument_group("what is judged").add_argument
    add("--capture", action="append", required=True, metavar="FILE", help="a capture; may repeat")
    add("--separate-transports", action="store_true", help="each session had its own transport")
    add("--spec-version", metavar="REV", help="judge by this revision")
    add("--rule", action="append", metavar="ID", help="only this rule; may repeat")
    add("--strict", action="store_true", help="a broken SHOULD counts as well")
    add = parser.add_argument_group("reports").add_argument
    add("--format", choices=("text", "json"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--json-file", type=Path, metavar="FILE", help="write the JSON report there as well")
    add_strict_option(add)
    add("--verbose", action="store_true", help="list what was not observed, with the reason")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


_RULES_DESCRIPTION = """\
List every rule with what it demands, its keyword and the revisions it holds
in. `mcptest explain ID` tells one in full.
"""
_RULES_EPILOG = """\
examples:
  mcptest compliance rules
  mcptest compliance rules --spec-version 2025-06-18 --side server --json

revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, draft

exit codes:
  0    listed
  2    bad options

see also: mcptest explain, mcptest compliance diff, docs/rules/README.md
"""


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _RULES_DESCRIPTION, _RULES_EPILOG
    add = parser.add_argument
    add("--format", choices=("text", "json"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--spec-version", metavar="REV", help="only rules that hold in this revision")
    add("--side", choices=("server", "client"), help="only rules that judge this side")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


_DIFF_DESCRIPTION = """\
What moves between two revisions, rule by rule: what was expected, what is
expected now, and what to do about it. With a suite also which of its
compliance tests that touches. For what breaks on a live server see `mcptest
doctor`.
"""
_DIFF_EPILOG = """\
examples:
  mcptest compliance diff 2025-11-25 2026-07-28
  mcptest compliance diff 2025-06-18 draft --format markdown
  mcptest compliance diff 2025-06-18 2025-11-25 --rules-from compliance.yml

revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28, draft

exit codes:
  0    told
  2    bad options, or a file that can't be read

see also: mcptest doctor, mcptest compliance rules, docs/compliance/upgrade.md
"""


def _configure_diff(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DIFF_DESCRIPTION, _DIFF_EPILOG
    add = parser.add_argument
    add("older", metavar="FROM", help="the revision that is left")
    add("newer", metavar="TO", help="the revision to go to")
    add("--format", choices=("text", "json", "markdown"), default="text", help="on stdout (text)")
    add("--json", action="store_true", help="the same as --format json")
    add("--rules-from", metavar="SUITE", help="say which tests of its compliance block it touches")
    add("--registry", metavar="FILE", help="another registry.yml, with its corpora beside it")
    add("--no-color", action="store_true", help="plain text")
    add("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.action == "run":
        from mcptest.commands.compliance.run import judge_live

        return judge_live(arguments)
    if arguments.action == "invariants":
        from mcptest.commands.compliance.captures import judge_captures

        return judge_captures(arguments)
    from mcptest.commands.compliance.rule_lists import list_rules, show_diff

    return list_rules(arguments) if arguments.action == "rules" else show_diff(arguments)
