"""Loading suites: every file that was named, all tests in their order, and all problems at once."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.revision import parse_revision
from mcptest.core.safe_text import show
from mcptest.suite.fields import (
    CLASS_OF,
    Checks,
    Reading,
    complain_of_nothing_asked,
    read_object,
    value_of,
)
from mcptest.suite.model import (
    BLOCKS,
    LANES,
    SINGLE,
    SUITE,
    Action,
    Block,
    ElicitationMock,
    ServerSpec,
    SetupStep,
    Suite,
    Test,
    ToolBlock,
    TraceEntry,
    TrajectoryBlock,
    TrajectoryCheck,
    TransportKind,
)
from mcptest.suite.reading import (
    LARGEST_FILE,
    ListNode,
    MappingNode,
    Node,
    Place,
    ScalarNode,
    SuiteError,
    SuiteProblem,
    SuiteSource,
    decode,
    did_you_mean,
    parse_yaml,
)
from mcptest.suite.templates import check_server_templates, check_templates, reference_problem
from mcptest.transport.files import read_bounded

if TYPE_CHECKING:
    from mcptest.suite.lane_blocks import Lanes

# -- What fields can't say -----------------------------------------------------------------------


def _check_expect(read: Reading) -> None:
    _check_bounds(read, "min_results", "max_results")
    if read.get("not_error") and read.get("is_error"):
        read.complain("is_error contradicts not_error", "is_error")
    if "matches_regex" in read:
        from mcptest.suite.regex import pattern_problem

        node = read.node_of("matches_regex")
        items = node.items if isinstance(node, ListNode) else ()
        for item, pattern in zip(items, read.get("matches_regex"), strict=True):
            if (problem := pattern_problem(pattern)) is not None:
                read.complain_at(item, f"matches_regex: {problem}", hint="patterns are RE2")
    if "json_path" in read:
        from mcptest.suite.jsonpath import path_problem

        table = read.node_of("json_path")
        for path in read.get("json_path"):
            problem = path_problem(path)
            if problem is not None and isinstance(table, MappingNode):
                read.complain_at(table.entries[path][0], f"json_path: {problem}")
    if "schema" in read:
        from mcptest.schema.validation import schema_problem

        if problem := schema_problem(read.get("schema")):
            read.complain(f"schema {problem}", "schema")


def _check_target(row: Reading) -> None:
    from mcptest.suite.observed import target_problem

    if row.sound and (problem := target_problem(row.get("target", ""))) is not None:
        row.complain(problem, "target")


def _check_bounds(read: Reading, least: str, most: str) -> None:
    low, high = read.get(least), read.get(most)
    if low is not None and high is not None and low > high:
        read.complain(f"{least} is {low}, which is more than {most}, {high}", least)


def _check_progress(read: Reading) -> None:
    """Everywhere but in `assert`."""
    asked = read.get("expect")
    rows = asked.get("checks", ()) if isinstance(asked, Reading) else asked or ()
    if isinstance(asked, Reading) and "min_progress" in asked:
        asked.complain("min_progress works only in assert", "min_progress")
    if any(row.get("target") == "progress" for row in rows):
        read.complain("progress works only in assert", "expect")


def _check_resources(read: Reading) -> None:
    asked = [name for name in ("list", "templates", "read") if name in read]
    if len(asked) > 1:
        read.complain(f"{' and '.join(asked)} in one block", asked[1], hint="write two tests")
    if not asked and "subscribe" not in read and "unsubscribe" not in read:
        read.complain("assert_resources needs list, read, templates or subscribe")
    awaits = read.get("expect_notification", False)
    if awaits and "subscribe" not in read:
        read.complain("expect_notification needs subscribe", "expect_notification")
    expect = read.get("expect")
    if "expect" not in read and not awaits:
        read.complain("expect is missing from assert_resources")
    elif isinstance(expect, Reading) and not expect.node.entries and not awaits:
        complain_of_nothing_asked(expect)
    _check_progress(read)


def _check_prompts(read: Reading) -> None:
    if ("list" in read) == ("get" in read):
        read.complain("assert_prompts needs either list or get", "get" if "get" in read else None)
    _check_progress(read)


def _check_trajectory(read: Reading) -> None:
    kind = read.get("type")
    about_one = {"tool": kind == "args_contain", "args": kind == "args_contain"}
    for name, needed in {**about_one, "tools": kind != "args_contain"}.items():
        if needed and not read.get(name):
            read.complain(f"{kind} needs {name}", name)
        elif not needed and read.get(name):
            read.complain(f"{name} has no effect for {kind}", name)


_CHECKS: Checks = {
    "expect": _check_expect,
    "assert_notifications.expect": lambda read: _check_bounds(read, "min_count", "max_count"),
    "check": _check_target,
    "assert_resources": _check_resources,
    "assert_prompts": _check_prompts,
    "assert_completion": _check_progress,
    "assert_sampling": _check_progress,
    "trajectory": _check_trajectory,
}


# -- Blocks and servers, from what was read to values --------------------------------------------

_STARTED = ("command", "args", "env", "cwd", "clean_env")
ACTIONS: tuple[Action, ...] = get_args(Action)


def _server(read: Reading, given: Given) -> ServerSpec | None:
    if not read.sound:
        return None
    if "command" not in read and "url" not in read and not given.server:
        read.complain("server needs a command or a url")
    check_server_templates(read, read.source, has_fixture=given.fixture, overridden=given.server)
    transport = _transport(read, overridden=given.server)
    # What would be ignored is said: a docker image that is not used is a false safety.
    if transport != "stdio" and "docker" in read:
        read.complain("docker needs a server with a command", "docker")
    for name in ("url", "headers") if transport == "stdio" else _STARTED:
        if read.get(name) and read.sound:
            message = f"{name} has no effect with transport {transport}"
            read.complain(message, name, warning=True)
    _check_references(read)
    spec = value_of(ServerSpec, read)
    offered: Reading | None = read.get("client_capabilities")
    if offered is not None and spec.client_capabilities is not None:
        capabilities = replace(spec.client_capabilities, elicitation=_elicitation(offered))
        spec = replace(spec, client_capabilities=capabilities)
    revision = str(read.get("spec_version", "auto"))
    try:
        revision = revision if revision == "auto" else parse_revision(revision).value
    except UsageError as error:
        read.complain(error.message, "spec_version", hint=f"auto, or {error.hint}")
    return replace(spec, transport=transport, spec_version=revision)


def _transport(read: Reading, *, overridden: bool) -> TransportKind:
    """`overridden`: --server provides the command, so the file need not."""
    named: TransportKind | None = read.get("transport")
    if named is not None:
        if named != "stdio" and "url" not in read:
            read.complain(f"transport {named} needs a url", "transport")
        if named == "stdio" and "command" not in read and not overridden:
            read.complain("transport stdio needs a command", "transport")
        return named
    if "url" not in read:
        return "stdio"
    if "command" in read:
        read.complain("the server has a command and a url", "url", hint="choose one with transport")
    try:
        return "sse" if urlsplit(read.get("url")).path.rstrip("/").endswith("/sse") else "http"
    except ValueError:
        return "http"


def _check_references(read: Reading) -> None:
    texts = [(name, name, read.get(name, "")) for name in ("url", "cwd")]
    for name in ("env", "headers"):
        table = read.get(name, {})
        texts += [(name, f"{name}.{show(key, 60)}", value) for key, value in table.items()]
    for name, what, text in texts:
        if (problem := reference_problem(text)) is not None:
            read.complain(f"{what}: {problem}", name)


def _elicitation(read: Reading) -> ElicitationMock | None:
    table: dict[str, Any] = dict(read.get("elicitation", {}))
    if not table:
        return None
    action = table.pop("action", "accept")
    if action not in ACTIONS:
        message = f"the action of elicitation must be one of {', '.join(ACTIONS)}"
        hint = did_you_mean(action, ACTIONS) if isinstance(action, str) else ""
        read.complain(message, "elicitation", hint=hint)
    content = table.get("content", table)
    if not isinstance(content, dict):
        read.complain("the content of elicitation must be a mapping", "elicitation")
    return ElicitationMock(action, content)


# -- From the nodes of one file to its tests -----------------------------------------------------

_NO_SERVER = "name one under server, or pass --server"


class Given(msgspec.Struct, frozen=True):
    """What the command line provides, so that a file need not."""

    fixture: bool = False
    server: bool = False
    trace: bool = False


class _Shared(msgspec.Struct, frozen=True):
    """What the tests of a file have in common."""

    sound: bool = True
    single: bool = False
    """There is one test, and it is the file."""
    server: ServerSpec | None = None
    has_server: bool = False
    """Also true for one that could not be understood, which was reported once."""
    defaults: Mapping[str, Any] = {}


class FileContent(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...] = ()
    lanes: Lanes | None = None


def content_of(root: Node, source: SuiteSource, name: str, given: Given) -> FileContent:
    """All of a file that could be understood; everything else is reported."""
    if not isinstance(root, MappingNode):
        message = f"a suite must be a mapping, not {root.described}"
        hint = f"start with server: and one of {', '.join(BLOCKS)}, or tests"
        source.report(message, root.line, root.column, hint=hint)
        return FileContent()
    asked = root.entries.keys()
    has_only_lanes = not asked.isdisjoint(LANES) and asked.isdisjoint(BLOCKS)
    if has_only_lanes or "tests" in asked or "defaults" in asked:
        read = read_object(SUITE, root, source)
        shared = _shared(read, given)
        # Lanes that talk to the server themselves need no tests.
        if asked.isdisjoint(("tests", "compliance", "properties")):
            read.complain("tests is missing from a suite")
        found = [_test(one, "", shared, given) for one in read.get("tests", ())]
        if not shared.sound:
            return FileContent()
        server = shared.server
    else:
        read = read_object(SINGLE, root, source)
        found = [_test(read, name, _Shared(single=True), given)]
        server = found[0].server if found[0] is not None else None
    lanes = None
    if any(name in read for name in LANES):
        from mcptest.suite.lane_blocks import lanes_of

        lanes = lanes_of(read, server, has_server="server" in asked or given.server)
    return FileContent(tuple(test for test in found if test is not None), lanes)


def _shared(read: Reading, given: Given) -> _Shared:
    defaults: Reading | None = read.get("defaults")
    values: dict[str, Any] = {} if defaults is None else defaults.values
    if "isolation" in read:
        if "isolation" in values:
            hint = "keep it here or in defaults"
            read.complain("isolation appears twice", "isolation", hint=hint)
        values = {**values, "isolation": read.get("isolation")}
    before = read.source.errors
    server: Reading | None = read.get("server")
    spec = None if server is None else _server(server, given)
    return _Shared(
        sound=read.faulty <= {"tests"} and read.source.errors == before,
        server=spec,
        has_server="server" in read.node.entries,
        defaults=values,
    )


def _test(read: Reading, name: str, shared: _Shared, given: Given) -> Test | None:
    source, defaults = read.source, shared.defaults
    before = source.errors
    block = _block(read, given)
    steps = (*defaults.get("setup", ()), *read.get("setup", ()))
    server = _server(read.get("server"), given) if "server" in read else shared.server
    missing = not ("server" in read or shared.has_server or given.server)
    if missing and "trajectory" not in read and read.sound:
        read.complain("the test has no server", hint=_NO_SERVER)
    if block is None or not read.sound or source.errors > before:
        return None
    # A skipped test is not run, so it needs no fixture.
    has_fixture = given.fixture or read.get("skip", False)
    parts = [value for name, value in read.values.items() if name in BLOCKS[1:]]
    check_templates(parts, source, steps=steps, has_fixture=has_fixture)
    if "audit_log" in read:
        check_server_templates(read, source, has_fixture=has_fixture)
    if source.errors > before:
        return None
    inherited = {
        name: read.get(name, defaults.get(name))
        for name in ("timeout", "skip_unless_env", "isolation")
        if name in read or name in defaults
    }
    return Test(
        name=read.get("name", name),
        block=block,
        place=read.place,
        server=server,
        setup=() if "trajectory" in read else tuple(value_of(SetupStep, step) for step in steps),
        skip=read.get("skip", False),
        tags=tuple(dict.fromkeys((*defaults.get("tags", ()), *read.get("tags", ())))),
        single=shared.single,
        **inherited,
    )


def _block(read: Reading, given: Given) -> Block | None:
    present = [name for name in BLOCKS if name in read.node.entries]
    if len(present) > 1:
        message = f"{' and '.join(present)} in one test"
        read.complain(message, present[-1], hint="a test has one block; write two tests")
        return None
    if not present:
        if read.sound:
            lone = next((name for name in ("trace", "audit_log") if name in read), None)
            hint = "trajectory is missing" if lone else f"one of {', '.join(BLOCKS)}"
            read.complain("the test has no block", lone, hint=hint)
        return None
    name = present[0]
    for source_of_calls in ("trace", "audit_log"):
        if source_of_calls in read and name != "trajectory":
            read.complain(f"{source_of_calls} has no effect for {name}", source_of_calls)
    if name not in read or not read.sound:
        return None
    if name == "trajectory":
        return _trajectory_of(read, live=given.trace)
    inner: Reading = read.get(name)
    block: Block = value_of(CLASS_OF[inner.declaration], inner, _CHECKS)
    if isinstance(block, ToolBlock):
        expect = block.expect
        counted = any(row.target == "progress" for row in expect.checks)
        if expect.min_progress is not None or counted:
            return replace(block, capture_progress=True)
    return block


def _trajectory_of(test: Reading, *, live: bool) -> TrajectoryBlock:
    """`trajectory` with its source; `live`: the calls come from a session, not from the file."""
    if "trace" in test and "audit_log" in test:
        test.complain("trace and audit_log in one test", "audit_log", hint="keep one of them")
    if "trace" not in test and "audit_log" not in test and not live:
        test.complain("a trajectory needs trace or audit_log", "trajectory")
    if test.get("setup"):
        test.complain("a trajectory starts no server, so setup would not run", "setup")
    return TrajectoryBlock(
        tuple(value_of(TrajectoryCheck, one, _CHECKS) for one in test.get("trajectory")),
        tuple(value_of(TraceEntry, one) for one in test.get("trace", ())),
        test.get("audit_log", ""),
    )


# -- Which files are suites ----------------------------------------------------------------------

SUFFIXES = (".yaml", ".yml")
SKIPPED_FOLDERS = frozenset({"fixtures", "__snapshots__", "node_modules"})

Found = str | SuiteProblem
_Identity = tuple[int, int]


def discover(paths: Sequence[str], fixture: str | None) -> Iterator[Found]:
    """The files of all paths, each once, in byte order of their names; and what can't be read."""
    avoided = _identity_of(fixture) if fixture else None
    seen: set[_Identity] = set()
    for path in paths:
        found_any = False
        for found in _under(path, avoided):
            if isinstance(found, SuiteProblem):
                found_any = found_any or found.severity == "error"
                yield found
                continue
            found_any = True
            if (identity := _identity_of(found)) not in seen:
                yield found
            if identity is not None:
                seen.add(identity)
        if not found_any:
            yield _problem(path, "there is no .yaml or .yml file in this folder")


def _under(path: str, avoided: _Identity | None) -> Iterator[Found]:
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116  # paths are texts here, as they were given
    except OSError as error:
        hint = "check the path, or write a first suite with mcptest init"
        yield _problem(path, f"can't be read: {error.strerror}", hint)
        return
    except ValueError:
        yield _problem(path, "is not a valid path")
        return
    if stat.S_ISDIR(kind):
        yield from _walk(path, avoided)
    elif not path.lower().endswith(SUFFIXES):
        yield _problem(path, "is not a YAML file", "suites end in .yaml or .yml")
    else:
        yield path


def _walk(root: str, avoided: _Identity | None) -> Iterator[Found]:
    waiting: list[os.DirEntry[str] | str] = [root]
    while waiting:
        entry = waiting.pop()
        folder = entry if isinstance(entry, str) else entry.path
        if not isinstance(entry, str):
            skipped = entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS
            if not entry.is_dir():
                if entry.name.lower().endswith(SUFFIXES):
                    yield entry.path
                continue
            if entry.is_symlink() and not skipped:
                yield _problem(entry.path, "a link to a folder is not followed", warning=True)
            if entry.is_symlink() or skipped or (avoided and _identity_of(entry.path) == avoided):
                continue
        try:
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda one: os.fsencode(one.name), reverse=True)
        except OSError as error:
            yield _problem(folder, f"can't be read: {error.strerror}")
            continue
        waiting.extend(inside)


def _identity_of(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # as above
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _problem(path: str, message: str, hint: str = "", *, warning: bool = False) -> SuiteProblem:
    return SuiteProblem(Place(path), message, hint, severity="warning" if warning else "error")


PROBLEMS_KEPT = 1_000


class LoadedSuite(msgspec.Struct, frozen=True):
    """The tests that can be run; with `keep_going` also the problems of those that can't."""

    suite: Suite
    problems: tuple[SuiteProblem, ...] = ()
    """What makes the run fail, whatever the tests say."""
    warnings: tuple[SuiteProblem, ...] = ()
    lanes: tuple[Lanes, ...] = ()
    """What files ask for besides their tests."""


def load_suites(
    paths: Sequence[str],
    *,
    fixture: str | None = None,
    keep_going: bool = False,
    server_given: bool = False,
    trace_given: bool = False,
) -> LoadedSuite:
    """Load everything that was named. SuiteError unless all of it is sound or `keep_going`.

    `server_given`: --server names the server, so a test need not. `trace_given`: the calls of a
    trajectory come from a live session.
    """
    given = Given(fixture=bool(fixture), server=server_given, trace=trace_given)
    tests: list[Test] = []
    lanes: list[Lanes] = []
    files: list[str] = []
    kept: dict[str, list[SuiteProblem]] = {"error": [], "warning": []}
    counted: Counter[str] = Counter()

    def report(*problems: SuiteProblem) -> None:
        for problem in problems:
            counted[problem.severity] += 1
            if counted[problem.severity] <= PROBLEMS_KEPT:
                kept[problem.severity].append(problem)

    for found in discover(paths, fixture):
        if isinstance(found, SuiteProblem):
            report(found)
            continue
        try:
            data = read_bounded(found, LARGEST_FILE, pipes=False, cut=True)
        except OSError as error:
            report(_problem(found, f"can't be read: {error.strerror or error}"))
            continue
        files.append(found)
        content, source = load_content(data, found, given)
        tests += content.tests
        lanes += [content.lanes] if content.lanes is not None else []
        report(*source.finish())
    report(*_equal_names(tests))
    errors = kept["error"]
    if left_out := counted["error"] - len(errors):
        more = f"{left_out} more problems in this and other files"
        errors.append(SuiteProblem(errors[-1].place, more))
    if errors and not (keep_going and (tests or lanes)):
        raise SuiteError(errors)
    suite = Suite(tuple(tests), tuple(files))
    return LoadedSuite(suite, tuple(errors), tuple(kept["warning"]), tuple(lanes))


def _equal_names(tests: Sequence[Test]) -> Iterator[SuiteProblem]:
    """Allowed, as in mcp-assert; but baselines and reports know tests by their names."""
    first: dict[str, Test] = {}
    for test in tests:
        earlier = first.setdefault(test.name, test)
        if earlier is not test:
            message = f"another test has the name {show(test.name, 80)!r}"
            hint = f"it is at {show(str(earlier.place), 400)}"
            yield SuiteProblem(test.place, message, hint, severity="warning")


def load_content(data: bytes, file: str, given: Given) -> tuple[FileContent, SuiteSource]:
    """Everything that one file's bytes say, and the source with its problems."""
    root, source = parse_yaml(data, file)
    if root is None or (isinstance(root, ScalarNode) and root.plain and not root.text):
        if not source.errors:
            blank = not decode(data).strip()
            source.report("the file is empty" if blank else "the file has no tests", 1, 1)
        return FileContent(), source
    return content_of(root, source, os.path.basename(file), given), source  # noqa: PTH119 - a file's
