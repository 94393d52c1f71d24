"""Playing a page: its files are written, its commands run, its samples compared, in their order."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator

import msgspec

from tests.docs.fences import Fence, Step, fences_of, steps_of
from tests.docs.matching import begins_with, is_shown
from tests.docs.workshop import Workshop
from tests.e2e.driving import BOUND, Done, mcptest

_LISTENS = re.compile(r"--(?:port|http) (\d{4,5})")


class Difference(msgspec.Struct, frozen=True):
    """Where a page and what happens are not the same."""

    line: int
    what: str
    said: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}\n{self.said}"


class Played(msgspec.Struct, frozen=True):
    step: Step
    done: Done
    said: str


def played(page: str, shop: Workshop) -> Iterator[tuple[Fence, list[Played], str]]:
    """Each fence with what its commands said, or with the text of the file that it shows."""
    with contextlib.ExitStack() as running:
        code = 0
        for fence in fences_of(page):
            if fence.not_run:
                continue
            if fence.file:
                text = "".join(f"{line}\n" for line in fence.lines[1:])
                yield fence, [], shop.show(fence.file, text)
            elif fence.is_commands:
                plays = []
                for step in steps_of(fence):
                    done = run_step(step, shop, code, running)
                    code = done.code
                    plays.append(Played(step, done, shop.as_on_the_page(done.said)))
                yield fence, plays, ""


def differences(page: str, shop: Workshop) -> list[Difference]:
    found: list[Difference] = []
    for fence, plays, text in played(page, shop):
        if fence.file:
            shown, came = fence.lines[1:], shop.as_on_the_page(text)
            if not is_shown(shown, came):
                found.append(Difference(fence.first, f"{fence.file} is another", came))
        for number, play in enumerate(plays):
            following = plays[number + 1] if number + 1 < len(plays) else None
            found += _judged(play, following, shop)
    return found


def _judged(play: Played, following: Played | None, shop: Workshop) -> Iterator[Difference]:
    step, done = play.step, play.done
    tells = following is not None and following.step.command.strip() == "echo $?"
    if not tells and done.code != (step.code or 0):
        what = f"{step.command!r} ends with {done.code}, not {step.code or 0}"
        yield Difference(step.line, f"{what} (<!-- exits: {done.code} --> says so)", play.said)
    if step.shown and not fits(step, done, shop):
        yield Difference(step.line, f"{step.command!r} says something else", play.said)


def fits(step: Step, done: Done, shop: Workshop) -> bool:
    return any(is_shown(step.shown, shop.as_on_the_page(way)) for way in ways_of(done))


def ways_of(done: Done) -> tuple[str, ...]:
    """stdout, or what a terminal shows of both, whichever came first."""
    return done.out, done.out + done.err, done.err + done.out


# -- running ---------------------------------------------------------------------------------


def run_step(step: Step, shop: Workshop, code: int, running: contextlib.ExitStack) -> Done:
    """Run one command in the folder of the page."""
    behind = step.command.endswith(" &")
    if behind or step.is_stopped:
        for port in _LISTENS.findall(step.command):
            shop.starts_itself(port)
    shop.provide_for(step.command)
    command = shop.rewritten(step.command)
    if behind:
        return running.enter_context(_in_the_background(command.removesuffix(" &"), step, shop))
    if step.is_stopped:
        return _stopped(command, step, shop)
    words = shop.words_of(command)
    if words and words[0] == "mcptest":
        return mcptest(*words[1:], cwd=shop.folder, env=shop.environment)
    shell = ["bash", "-c", f"(exit {code})\n{command}"]
    done = subprocess.run(
        shell,
        cwd=shop.folder,
        env=shop.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # in the order in which they spoke
        timeout=BOUND,
    )
    return Done(done.returncode, done.stdout.decode(), "")


@contextlib.contextmanager
def _begun(command: str, shop: Workshop) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=shop.folder,
        env=shop.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def _in_the_background(command: str, step: Step, shop: Workshop) -> Iterator[Done]:
    with _begun(command, shop) as process:
        said = _heard(process, step, shop)
        yield Done(0, said, "")


def _stopped(command: str, step: Step, shop: Workshop) -> Done:
    """Once it has said what the page shows, Ctrl-C."""
    with _begun(command, shop) as process:
        assert process.stdout is not None
        said = _heard(process, step, shop)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=BOUND)
        return Done(process.returncode, said + rest.decode(), "")


def _heard(process: subprocess.Popen[bytes], step: Step, shop: Workshop) -> str:
    assert process.stdout is not None
    seen = b""
    limit = time.monotonic() + BOUND
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while not seen or not begins_with(step.shown, shop.as_on_the_page(seen.decode())):
            if not selector.select(max(0.0, limit - time.monotonic())):
                break
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            seen += chunk
    return seen.decode()
