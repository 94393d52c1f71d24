"""What the commands that explore a server share: how it is named and met."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from mcptest.commands.command_line import options_again, repeat_line, server_options
from mcptest.commands.options import duration, limit_of, named_target, startup_of, wanted_revision
from mcptest.core.errors import ErrorKind, ExitCode, McptestError, PeerError, UsageError
from mcptest.core.redaction import redaction
from mcptest.session.connection import Stopped
from mcptest.transport.interrupt import Stop, stopping_on_signals
from mcptest.transport.target import Target, in_container
from mcptest.transport.temporary import checked_fixture, isolate_fixture

if TYPE_CHECKING:
    from mcptest.probe.live_server import Subject
    from mcptest.schema.tool_inputs import FixturePaths
    from mcptest.session.answers import Answers
VARIABLE = "{{fixture}}"


class Explored(msgspec.Struct, frozen=True):
    """A server on its ground."""

    target: Target
    """As the command line names it: `{{fixture}}` still stands in it."""
    subject: Subject
    stop: Stop
    fixture: Path | None = None
    """The copy that the server works on."""

    def ground(self, *, as_variable: bool = False) -> FixturePaths | None:
        """Where a made-up path may lead: in the copy, or as a suite names it."""
        from mcptest.schema.tool_inputs import FixturePaths

        if self.fixture is None:
            return None
        folder = VARIABLE if as_variable else str(self.fixture)
        for one in sorted(self.fixture.rglob("*")):
            if one.is_file():
                return FixturePaths(folder, f"{folder}/{one.relative_to(self.fixture).as_posix()}")
        return FixturePaths(folder)


def cut_off(explored: Explored, arguments: argparse.Namespace, *, interrupted: bool) -> str:
    """Why a report that is not whole is not, where its time was over; otherwise nothing."""
    is_over = interrupted and explored.stop.is_out_of_time
    return out_of_time(arguments) if is_over else ""


def out_of_time(arguments: argparse.Namespace) -> str:
    """Why a command ended, in words."""
    return f"stopped after {arguments.max_time} of --max-time"


def ended_before_meeting(arguments: argparse.Namespace, stop: Stop) -> BaseException:
    """What to raise where we were stopped and there is nothing to report."""
    if not stop.is_out_of_time:
        return KeyboardInterrupt()
    message = f"{out_of_time(arguments)}: the server was not ready by then"
    return PeerError(ErrorKind.TIMEOUT, message, hint="allow more time with --max-time")


@contextlib.contextmanager
def exploring(arguments: argparse.Namespace, answers: Answers | None = None) -> Iterator[Explored]:
    """The server that was named, on a copy of the fixture, until a signal or `--max-time` stops us.

    Everything is taken down at the end.
    """
    with (
        stopping_on_signals() as stop,
        ending_for_people(arguments, stop),
        contextlib.ExitStack() as lent,
    ):
        source = checked_fixture(arguments.fixture)
        named = target = named_target(arguments)
        folder = None
        if source is not None:
            copy = isolate_fixture(source)
            lent.callback(copy.remove)
            folder = copy.path
            words = (word.replace(VARIABLE, str(folder)) for word in named.command)
            target = replace(named, command=tuple(words))
        elif any(VARIABLE in word for word in (*named.command, named.url)):
            raise UsageError("{{fixture}} has no value", hint="pass --fixture DIR")
        target = in_docker(target, getattr(arguments, "docker", ""), folder)
        captures = getattr(arguments, "save_capture", None)
        subject = subject_for(arguments, target, stop, captures, answers)
        lent.enter_context(subject)
        if "max_time" in arguments:
            stop.limit = limit_of(arguments)
        yield Explored(named, subject, stop, folder)


def subject_for(
    arguments: argparse.Namespace,
    target: Target,
    stop: Stop,
    captures: Path | None,
    answers: Answers | None = None,
) -> Subject:
    """A session with a server, as the options say."""
    from mcptest.probe.live_server import Subject

    return Subject(
        target,
        revision=wanted_revision(arguments.spec_version),
        timeout=duration(arguments.timeout, "--timeout"),
        startup=startup_of(arguments),
        answers=answers,
        captures=captures,
        should_stop=stop.is_over,
    )


@contextlib.contextmanager
def ending_for_people(arguments: argparse.Namespace, stop: Stop) -> Iterator[None]:
    """Where we are stopped before anything was seen, or fail: in words, and without secrets."""
    try:
        yield
    except Stopped:
        raise ended_before_meeting(arguments, stop) from None
    except McptestError as error:  # the server's own words may be in it
        raise error.masked(redaction.masker.cut_text) from None


def in_docker(target: Target, image: str, fixture: Path | None) -> Target:
    """The same server in a container of its own."""
    if not image:
        return target
    if target.way != "stdio":
        raise UsageError("--docker needs a server command, not a URL")
    return in_container(target, image, str(fixture) if fixture else "")


def repeat_command(arguments: argparse.Namespace, *options: str) -> str:
    """This command line again, with what names the server and these options, without secrets."""
    words = ["mcptest", arguments.command_name, *options_again(arguments, *options)]
    words += [*server_options(arguments), *options_again(arguments, "fixture")]
    words += [] if arguments.spec_version == "auto" else ["--spec-version", arguments.spec_version]
    return repeat_line(words, arguments)


def close_and_say_notes(explored: Explored) -> int:
    """End the session and say what was odd about it: for commands whose report has no notes.

    Only a capture that is not whole is a failure.
    """
    explored.subject.close()
    for note in explored.subject.notes:
        sys.stderr.write(f"mcptest: {note}\n")
    return ExitCode.FAILED if explored.subject.capture_troubles else ExitCode.OK
