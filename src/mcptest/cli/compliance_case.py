"""What `compliance run` is to judge: the server and the block, from options or from a suite."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcptest.cli.compliance_options import fixtures_of, repeat_command
from mcptest.cli.options import (
    duration,
    headers_of,
    pairs,
    server_words,
    startup_of,
    wanted_revision,
)
from mcptest.model.errors import UsageError
from mcptest.model.redaction import redaction
from mcptest.model.revision import Revision
from mcptest.model.show import show
from mcptest.run.choosing import ServerChoice
from mcptest.run.compliance.order import Order
from mcptest.run.lanes_compliance import narrowed
from mcptest.run.lanes_names import check_names, check_rules
from mcptest.run.lanes_target import SuiteServer, server_of_suite
from mcptest.run.naming import target_of
from mcptest.suite.compliance_block import ComplianceBlock
from mcptest.suite.lanes import Lanes
from mcptest.suite.load import load_suites
from mcptest.suite.problems import render as render_problem

_ALL = "all"


@dataclass(frozen=True, slots=True)
class Case:
    block: ComplianceBlock
    label: str
    """How the server is called, without secrets."""
    order: Order | None = None
    """None when nothing is asked of a server."""
    every_revision: bool = False
    corpora: Path | None = None
    notes: tuple[str, ...] = ()
    repeat: Callable[[str], str] = lambda revision: ""

    def orders(self, should_stop: Callable[[], bool]) -> Iterator[Order | None]:
        """One for each revision; the server is asked which it speaks, where all are wanted."""
        if self.order is None:
            yield None
            return
        order = msgspec.structs.replace(self.order, should_stop=should_stop)
        if not self.every_revision:
            yield order
            return
        from mcptest.run.compliance.judging import spoken_revisions

        for revision in spoken_revisions(order):
            repeat = self.repeat(revision.value)
            because = "one of those that the server speaks"
            yield msgspec.structs.replace(order, revision=revision, because=because, repeat=repeat)


def case_of(arguments: argparse.Namespace, corpora: Path | None) -> Case:
    """UsageError for whatever can't be understood. Nothing is started here."""
    if arguments.from_suite is not None:
        return _from_suite(arguments, corpora)
    every = arguments.spec_version == _ALL
    revision = None if every else wanted_revision(arguments.spec_version)
    check_rules(arguments.rule, revision, corpora)
    server = SuiteServer(target_of(server_words(arguments)), revision)
    return _case(arguments, corpora, ComplianceBlock(), server)


def _case(
    arguments: argparse.Namespace,
    corpora: Path | None,
    block: ComplianceBlock,
    server: SuiteServer,
) -> Case:
    target = server.target
    masker = redaction.masker
    asked = server.revision.value if server.revision is not None else ""
    timeout = duration(arguments.timeout, "--timeout")
    every = arguments.spec_version == _ALL

    def repeat(revision: str) -> str:
        return masker.text(repeat_command(arguments, revision))

    order = Order(
        target=target,
        revision=server.revision,
        rules=tuple(arguments.rule) if block.tests is None else (),
        allow_tools=tuple(arguments.allow_tool),
        fixtures={**block.fixtures, **fixtures_of(arguments)},
        timeout=timeout,
        startup=startup_of(arguments),
        corpora=corpora,
        captures=_folder(arguments.capture),
        repeat=repeat("" if arguments.from_suite is not None else asked),
    )
    return Case(
        block=block,
        label=arguments.server_label or show(masker.text(target.label), 120),
        order=order if block.needs_server else None,
        every_revision=every,
        corpora=corpora,
        repeat=repeat,
    )


def _folder(folder: Path | None) -> Path | None:
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"can't keep captures in {folder}: {error.strerror}") from None
    return folder


# -- a suite -------------------------------------------------------------------------------------


def _from_suite(arguments: argparse.Namespace, corpora: Path | None) -> Case:
    lanes = _lanes_in(arguments)
    block = lanes.compliance
    if block is None:
        raise UsageError(
            f"{arguments.from_suite} has no compliance block",
            hint="--from-suite takes a suite with compliance:, --server judges without one",
        )
    check_names([lanes], corpora)
    _check_wishes(arguments, block, corpora)
    asked = bool(arguments.rule)
    block = narrowed(block, arguments.rule)
    if not block.needs_server:
        file = show(str(arguments.from_suite), 200)
        return Case(block, arguments.server_label or file, corpora=corpora)
    server = server_of_suite(lanes.server, _choice(arguments), "")
    server = SuiteServer(server.target, block.spec_version or server.revision)
    case = _case(arguments, corpora, block, server)
    note = "only the tests that --rule names were run, and no gate"
    return Case(
        case.block,
        case.label,
        case.order,
        case.every_revision,
        corpora,
        (*case.notes, note) if asked else case.notes,
        case.repeat,
    )


def _lanes_in(arguments: argparse.Namespace) -> Lanes:
    file = str(arguments.from_suite)
    if Path(file).is_dir():
        raise UsageError(f"--from-suite takes a file, and {file} is a folder")
    given = arguments.server is not None or bool(arguments.server_command)
    # What its tests need is not asked here, so a fixture counts as given.
    loaded = load_suites([file], fixture=file, server_given=given)
    for problem in loaded.warnings:
        sys.stderr.write(render_problem(problem) + "\n")
    return loaded.lanes[0] if loaded.lanes else Lanes(file)


def _choice(arguments: argparse.Namespace) -> ServerChoice:
    if arguments.server is not None and arguments.server_command:
        raise UsageError("the server is named twice: by --server and after --")
    version = arguments.spec_version
    return ServerChoice(
        server=arguments.server,
        command=tuple(arguments.server_command),
        env=tuple(pairs(arguments.env, "--env").items()),
        headers=tuple(headers_of(arguments).items()),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        spec_version="" if version in {"auto", _ALL} else version,
    )


def _check_wishes(
    arguments: argparse.Namespace, block: ComplianceBlock, corpora: Path | None
) -> None:
    """What the command line asks must fit what the suite says."""
    pinned, version = block.spec_version, arguments.spec_version
    if pinned is not None and version != "auto":
        wanted: Revision | None = None if version == _ALL else wanted_revision(version)
        if wanted is not pinned:
            raise UsageError(
                f"the suite pins {pinned.label}, and --spec-version says {show(version, 40)}",
                hint="change compliance.spec_version, or leave the option out",
            )
    if block.tests is None:
        check_rules(arguments.rule, pinned, corpora)
        return
    names = [test.name for test in block.tests]
    for name in arguments.rule:
        if name not in names:
            from mcptest.suite.problems import did_you_mean

            raise UsageError(
                f"--rule: the suite has no test {show(name, 60)}", hint=did_you_mean(name, names)
            )
