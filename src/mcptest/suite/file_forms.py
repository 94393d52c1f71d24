"""From the nodes of one file to its tests: one test as in mcp-assert, or our form with many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mcptest.suite.block_forms import block_of, trajectory_of
from mcptest.suite.declarations import BLOCKS, LANES, SINGLE, SUITE
from mcptest.suite.model import Block, Isolation, ServerSpec, SetupStep, Test
from mcptest.suite.problems import Source
from mcptest.suite.reading import Reading, describe, read_object
from mcptest.suite.server_form import server_of
from mcptest.suite.template_checks import check_server_templates, check_templates
from mcptest.suite.yaml_nodes import Mapping, Node

if TYPE_CHECKING:
    from mcptest.suite.lanes import Lanes

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
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    isolation: Isolation | None = None
    steps: tuple[Reading, ...] = ()
    skip_unless_env: str = ""


class FileContent(msgspec.Struct, frozen=True):
    tests: tuple[Test, ...] = ()
    lanes: Lanes | None = None


def content_of(root: Node, source: Source, name: str, given: Given) -> FileContent:
    """All of a file that could be understood; everything else is reported."""
    if not isinstance(root, Mapping):
        source.report(
            f"a suite must be a mapping, not {describe(root)}",
            root.line,
            root.column,
            hint=f"start with server: and one of {', '.join(BLOCKS)}, or tests",
        )
        return FileContent()
    if "tests" in root.entries or "defaults" in root.entries or _has_only_lanes(root):
        return _suite(read_object(SUITE, root, source), given)
    read = read_object(SINGLE, root, source)
    test = _test(read, name, _Shared(single=True), given)
    server = test.server if test is not None else None
    lanes = _lanes(read, server, has_server="server" in read.node_entries or given.server)
    return FileContent((test,) if test is not None else (), lanes)


_ENOUGH_ALONE = ("compliance", "properties")
"""Lanes that need no tests, because they talk to the server themselves."""


def _has_only_lanes(root: Mapping) -> bool:
    asked = root.entries.keys()
    return any(name in asked for name in LANES) and not any(name in asked for name in BLOCKS)


def _suite(read: Reading, given: Given) -> FileContent:
    shared = _shared(read, given)
    if not any(name in read.node_entries for name in ("tests", *_ENOUGH_ALONE)):
        read.complain("tests is missing from a suite")
    found = [_test(one, "", shared, given) for one in read.get("tests", ())]
    if not shared.sound:
        return FileContent()
    lanes = _lanes(read, shared.server, has_server=shared.has_server or given.server)
    return FileContent(tuple(test for test in found if test is not None), lanes)


def _lanes(read: Reading, server: ServerSpec | None, *, has_server: bool) -> Lanes | None:
    if not any(name in read for name in LANES):
        return None
    from mcptest.suite.lanes import lanes_of

    return lanes_of(read, server, has_server=has_server)


def _shared(read: Reading, given: Given) -> _Shared:
    defaults: Reading | None = read.get("defaults")
    values: dict[str, Any] = {} if defaults is None else defaults.values
    if "isolation" in read and "isolation" in values:
        read.complain("isolation stands twice", "isolation", hint="keep it here or in defaults")
    before = read.source.errors
    server: Reading | None = read.get("server")
    spec = None if server is None else _server(server, given)
    return _Shared(
        sound=read.faulty <= {"tests"} and read.source.errors == before,
        server=spec,
        has_server="server" in read.node_entries,
        timeout=values.get("timeout"),
        tags=values.get("tags", ()),
        isolation=read.get("isolation") or values.get("isolation"),
        steps=values.get("setup", ()),
        skip_unless_env=values.get("skip_unless_env", ""),
    )


def _server(read: Reading, given: Given) -> ServerSpec | None:
    if not read.sound:
        return None
    if "command" not in read and "url" not in read and not given.server:
        read.complain("server needs a command or a url")
    check_server_templates(read, read.source, has_fixture=given.fixture, overridden=given.server)
    return server_of(read, overridden=given.server)


def _test(read: Reading, name: str, shared: _Shared, given: Given) -> Test | None:
    before = read.source.errors
    block = _block(read, given)
    steps = (*shared.steps, *read.get("setup", ()))
    server = _server(read.get("server"), given) if "server" in read else shared.server
    missing = not ("server" in read or shared.has_server or given.server)
    if missing and "trajectory" not in read and read.sound:
        read.complain("the test has no server", hint=_NO_SERVER)
    if block is None or not read.sound or read.source.errors > before:
        return None
    _check_names(read, steps, given)
    if read.source.errors > before:
        return None
    return Test(
        name=read.get("name", name),
        block=block,
        place=read.place,
        server=server,
        setup=tuple(_step(step) for step in steps) if "trajectory" not in read else (),
        timeout=read.get("timeout", shared.timeout),
        skip=read.get("skip", False),
        skip_unless_env=read.get("skip_unless_env", shared.skip_unless_env),
        tags=tuple(dict.fromkeys((*shared.tags, *read.get("tags", ())))),
        isolation=read.get("isolation", shared.isolation),
        single=shared.single,
    )


def _check_names(read: Reading, steps: tuple[Reading, ...], given: Given) -> None:
    source = read.source
    parts = [value for name, value in read.values.items() if name in BLOCKS[1:]]
    # A skipped test is not run, so it needs no fixture.
    has_fixture = given.fixture or read.get("skip", False)
    check_templates(parts, source, steps=steps, has_fixture=has_fixture)
    if "audit_log" in read:
        check_server_templates(read, source, has_fixture=has_fixture)


def _block(read: Reading, given: Given) -> Block | None:
    present = [name for name in BLOCKS if name in read.node_entries]
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
            read.complain(f"{source_of_calls} has no meaning for {name}", source_of_calls)
    if name not in read or not read.sound:
        return None
    if name == "trajectory":
        return trajectory_of(read, live=given.trace)
    return block_of(name, read.get(name))


def _step(read: Reading) -> SetupStep:
    return SetupStep(
        tool=read.get("tool"),
        args=read.get("args", {}),
        capture=read.get("capture", {}),
        place=read.place,
    )
