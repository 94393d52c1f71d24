"""What a suite would do beyond calling tools, as a program: `suite_guard PATH FIXTURE`.

A suite may say how its server is started and which files to look at, and an agent may have written
it. So before one is run for an agent, everything in it that could reach past the server that was
allowed is refused. It reads hostile YAML, so it is a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from mcptest.core.errors import McptestError
from mcptest.core.safe_text import show
from mcptest.suite.load import LoadedSuite, load_suites
from mcptest.suite.model import Expect, ServerSpec, TrajectoryBlock

FIXTURE = "{{fixture}}"
_SHOWN = 20


def refused(loaded: LoadedSuite) -> Iterator[str]:
    """Why this suite is not run for an agent; nothing where it is."""
    for lanes in loaded.lanes:
        for name, place in lanes.places:
            yield f"{place}: a {name} block is not run here; there are other tools for that"
        if lanes.server is not None:
            yield from _of_server(lanes.server)
    for test in loaded.suite.tests:
        if test.server is not None:
            yield from _of_server(test.server)
        if isinstance(test.block, TrajectoryBlock) and test.block.audit_log:
            yield f"{test.place}: audit_log reads a file"
        expect = getattr(test.block, "expect", None)
        for path in _files(expect) if isinstance(expect, Expect) else ():
            rest = path.removeprefix(FIXTURE)
            below = path != rest or not path.startswith(("/", "~"))
            if not below or ".." in rest.split("/") or "{{" in rest or "\\" in rest:
                yield f"{test.place}: {show(path, 80)} is not a path below {FIXTURE}"


def _of_server(server: ServerSpec) -> Iterator[str]:
    """The command gives way to the server that was allowed; the rest would be added to it."""
    if server.transport != "stdio" or server.url:
        yield f"{server.place}: the suite names a URL of its own"
    for name in ("env", "headers", "cwd", "docker"):
        if getattr(server, name):
            yield f"{server.place}: server.{name} would change the server that was allowed"


def _files(expect: Expect) -> list[str]:
    named = [*expect.file_contains, *expect.file_not_contains]
    return [*named, *expect.file_not_exists, *expect.file_unchanged]


def main(words: Sequence[str]) -> int:
    path, fixture = words
    try:
        loaded = load_suites([path], fixture=fixture or None, server_given=True)
    except McptestError:
        return 0  # `run` refuses it too, and says why
    reasons = list(dict.fromkeys(refused(loaded)))
    for reason in reasons[:_SHOWN]:
        sys.stdout.write(f"{reason}\n")
    if len(reasons) > _SHOWN:
        sys.stdout.write(f"and {len(reasons) - _SHOWN} more\n")
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
