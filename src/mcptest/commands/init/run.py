"""What `mcptest init` does: write a first suite, and keep the first answers."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from mcptest.commands.command_line import repeat_line, server_options
from mcptest.commands.golden_answers import keep_first_answers
from mcptest.commands.options import duration
from mcptest.commands.server_options import Explored, cut_off, exploring, out_of_time
from mcptest.core.errors import ExitCode, UsageError
from mcptest.core.limits import Deadline
from mcptest.core.redaction import is_credential_header
from mcptest.core.safe_text import show
from mcptest.probe.audit_run import DOUBTFUL, Audit, AuditOrder
from mcptest.probe.starter_suites import (
    place_schema,
    place_starters,
    put,
    starters_of_audit,
    written_server,
)
from mcptest.report.audit import AuditItem, broken_claims
from mcptest.report.starter_files import placed_lines
from mcptest.schema.tool_inputs import NO_STRUCTURED_CONTENT
from mcptest.session.answers import NO_ANSWERS
from mcptest.session.connection import Stopped
from mcptest.session.pages import check_tool_names
from mcptest.suite.starters import SCHEMA_FILE, WrittenServer, scalar
from mcptest.transport.target import Target

_FIRST = "read_file.yaml"
_HELLO = Path("fixtures", "hello.txt")


def run_init(arguments: argparse.Namespace) -> int:
    if arguments.server is None and not arguments.server_command:
        return _write_example(arguments)
    # As a suite does that declares nothing: else its tests would see another server.
    with exploring(arguments, NO_ANSWERS) as explored:
        code, server = _write_suite(arguments, explored)
    target, limit = explored.target, explored.stop.limit
    del explored  # and with it what the server said, which may be large
    if server is not None:  # when the server that was explored is gone: the tests have their own
        code = max(code, _keep_answers(arguments, target, server, limit))
        named = () if server.block else tuple(server_options(arguments))
        _say_next(arguments, arguments.fixture, named, with_snapshots=arguments.snapshots)
    return code


def _write_suite(
    arguments: argparse.Namespace, explored: Explored
) -> tuple[int, WrittenServer | None]:
    """Write the tests; gives the server that they name, if any was written."""
    _check_free(arguments.folder)
    order = AuditOrder(
        include_writes=arguments.allow_writes,
        allow_tools=frozenset(arguments.allow_tool),
        verify=False,
        ground=explored.ground(),
        timeout=duration(arguments.timeout, "--timeout"),
    )
    audit = Audit(explored.subject, order)
    audit.meet()
    if "tools/list" not in audit.offer.problems:
        check_tool_names(arguments.allow_tool, audit.offer.tools)
    for _ in audit.items():
        pass
    was_cut = cut_off(explored, arguments, interrupted=audit.interrupted)
    report = audit.report(was_cut)
    if report.interrupted:
        return ExitCode.INTERRUPTED, None
    fixture = str(explored.fixture) if explored.fixture is not None else ""
    starters = starters_of_audit(report, ground=explored.ground(as_variable=True), fixture=fixture)
    if getattr(arguments, "timeout_given", False):  # their tests are run at once, as patiently
        starters = (replace(one, timeout=arguments.timeout) for one in starters)
    server = written_server(explored.target, spec_version=arguments.spec_version)
    placed = place_starters(arguments.folder, starters, server)
    for method, reason in report.problems.items():
        sys.stderr.write(f"mcptest: {method} could not be read: {reason}\n")
    if not placed:
        sys.stderr.write("mcptest: the server has no tools, prompts or resources to test\n")
        return ExitCode.FAILED if report.problems else ExitCode.NOTHING_MATCHED, None
    told = placed_lines(placed, str(arguments.folder), server.needs)
    sys.stdout.writelines(f"{line}\n" for line in told)
    for item in report.items:
        if item.is_bad:
            sys.stdout.write(f"  {item.kind} {item.name!r} {_what_its_test_does(item)}\n")
        for note in item.notes:
            if note.startswith(DOUBTFUL):
                sys.stdout.write(f"  {item.kind} {item.name!r}: {note}\n")
    sys.stderr.writelines(f"mcptest: {note}\n" for note in report.notes)
    unchecked = any(item.unchecked for item in report.items)
    lost = was_cut or report.problems or unchecked or any(one.how == "left out" for one in placed)
    return ExitCode.FAILED if lost else ExitCode.OK, server


def _what_its_test_does(item: AuditItem) -> str:
    """A suite holds what is there against the output schema, and does not miss what is not."""
    unseen = {NO_STRUCTURED_CONTENT, item.unchecked, *broken_claims(item.claims)}
    if item.health.is_broken or set(item.findings) - unseen:
        return "is broken: its test will fail"
    return f"has a fault that its test does not check: {show(item.findings[0], 200)}"


def _keep_answers(
    arguments: argparse.Namespace, target: Target, server: WrittenServer, limit: Deadline | None
) -> int:
    """Golden files for the tests, from the suite as it stands."""
    if not arguments.snapshots:
        return ExitCode.OK
    # Only servers that the tests start see it: what the suite calls ${NAME} has its value here.
    started = target.way == "stdio"
    if server.needs:
        held = (value for name, value in target.headers.items() if is_credential_header(name))
        values = [target.env[name] for name in server.needs] if started else [*held]
        os.environ.update(dict(zip(server.needs, values, strict=True)))
    options = [f"--timeout={arguments.timeout}", *(["--quiet"] if arguments.quiet else [])]
    options += [f"--fixture={arguments.fixture}"] if arguments.fixture else []
    command: tuple[str, ...] = ()
    if not server.block:  # it must not be written down, so it has to be named each time
        options += [f"--env={name}={value}" for name, value in target.env.items()]
        options += [f"--header={name}={value}" for name, value in target.headers.items()]
        options += [f"--cwd={target.cwd}"] if target.cwd else []
        options += [] if started else [f"--server={target.url}"]
        command = target.command if started else ()
    try:
        if limit is not None and limit.expired:
            raise Stopped
        return keep_first_answers(arguments.folder, options, command, limit)
    except Stopped:
        if limit is None or not limit.expired:
            return ExitCode.INTERRUPTED
    missing = "not all golden files were written and verified"
    sys.stderr.write(f"mcptest: {out_of_time(arguments)}: {missing}\n")
    return ExitCode.FAILED


def _check_free(folder: Path) -> None:
    """Two suites in one folder would be one suite that nobody wrote."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder")
    taken = next((one for one in sorted(folder.glob("*.y*ml"))), None) if folder.is_dir() else None
    if taken is not None:
        raise UsageError(
            f"{taken} already exists; nothing was written",
            hint="name another folder, or add tests with mcptest generate",
        )


def _write_example(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    for name in (_FIRST, _HELLO):
        if os.path.lexists(folder / name):
            raise UsageError(f"{folder / name} already exists; nothing was written")
    try:
        (folder / _HELLO).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None
    put(folder / _HELLO, b"Hello, world!\n", overwrite=False)
    put(folder / _FIRST, _example().encode(), overwrite=False)
    place_schema(folder)
    sys.stdout.write(f"created {folder / _FIRST}\ncreated {folder / _HELLO}\n")
    _say_next(arguments, str(folder / "fixtures"))
    return ExitCode.OK


def _example() -> str:
    command = ["mcptest"] if shutil.which("mcptest") else [sys.executable, "-m", "mcptest"]
    words = [*command, "serve", "demo", "--root", "{{fixture}}"]
    return f"""\
# yaml-language-server: $schema=./{SCHEMA_FILE}
# One test: what to start, what to call, what to expect. Replace the demo with your own server:
# `mcptest init DIR --server "…"` writes such a test for each of its tools.
name: read_file returns the file
server:
  command: {scalar(words[0])}
  args: [{", ".join(map(scalar, words[1:]))}]
assert:
  tool: read_file
  args:
    path: hello.txt
  expect:
    not_error: true
    contains: ["Hello, world!"]
    file_unchanged: ["{{{{fixture}}}}/hello.txt"]
timeout: 30s
"""


def _say_next(
    arguments: argparse.Namespace,
    fixture: str | None,
    server: Sequence[str] = (),
    *,
    with_snapshots: bool = False,
) -> None:
    """`server`: the options that name it, where the files must not."""
    words = [str(arguments.folder), *server, *(["--fixture", fixture] if fixture else [])]
    sys.stdout.write(f"\nrun it: {repeat_line(['mcptest', 'run', *words], arguments)}\n")
    if with_snapshots:
        again = repeat_line(["mcptest", "snapshot", *words], arguments)
        sys.stdout.write(f"compare responses later: {again}\n")
