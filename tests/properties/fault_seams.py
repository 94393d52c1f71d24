"""How a bug is put into the demo, and what is known of it.

The faults stand on the seams of `tests.mutants`. Some need a sequence: there the demo misbehaves
only after certain messages of the same session, in their order.
"""

from __future__ import annotations

from tests.mutants.seams import NOTHING, Several, hear, on_answer, params_of, patch

TYPE_CHECKING = False  # a faulty server starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.mutants.seams import Fault, Obj, When

BUGS: dict[str, Bug] = {}


class Bug:
    """One bug in the demo server."""

    def __init__(
        self,
        name: str,
        about: str,
        found_by: str,
        rules: tuple[str, ...],
        fault: Fault,
        least: int = 1,
        revision: str = "2025-11-25",
        allow: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.about = about
        self.found_by = found_by
        self.rules = rules
        """Any of these says so; `crash`, `hang` and `relation` are ways without a rule."""
        self.fault = fault
        self.least = least
        """How many messages of a client it takes, after the session has begun."""
        self.revision = revision
        self.allow = allow
        """Tools that may be called, though they do not say that they only read."""


def bug(
    name: str,
    about: str,
    found_by: str,
    rules: tuple[str, ...],
    fault: Fault,
    least: int = 1,
    revision: str = "2025-11-25",
    allow: tuple[str, ...] = (),
) -> None:
    BUGS[name] = Bug(name, about, found_by, rules, fault, least, revision, allow)


# -- how a bug is made -------------------------------------------------------------------------


def die() -> None:
    import os

    os._exit(3)


def fall_silent() -> None:
    import signal

    signal.pause()


def when_heard(when: Callable[[Any], bool], act: Callable[[], None]) -> Fault:
    """Do something as soon as such a message comes in."""

    def install() -> None:
        def listen(value: Any) -> Any:
            if when(value):
                act()
            return value

        hear(listen)

    return install


def on_line(when: Callable[[bytes], bool], act: Callable[[Any], bool]) -> Fault:
    """Do something as soon as such a line comes in; True: it is dealt with."""

    def make(take_line: Any) -> Any:
        def taken(self: Any, line: bytes | None) -> None:
            if line is None or not when(line) or not act(self):
                take_line(self, line)

        return taken

    return patch("demo.stdio_server:StdioConnection._take_line", make)


def ignored(connection: Any) -> bool:
    return True


def dying(connection: Any) -> bool:
    die()
    return True


def silent(connection: Any) -> bool:
    fall_silent()
    return True


def chatty(connection: Any) -> bool:
    import os

    os.write(1, b"could not decode that\n")
    return False


class Sequence:
    """Whether these came in this order, whatever came between them."""

    def __init__(self, *wanted: When) -> None:
        self.wanted = wanted
        self.place = 0
        self.hits: list[Any] = []

    def install(self) -> None:
        def listen(value: Any) -> Any:
            if isinstance(value, dict) and isinstance(value.get("method"), str):
                self.take(value)
            return value

        hear(listen)

    def take(self, message: Obj) -> None:
        self.place += self.wanted[self.place](message)
        if self.place == len(self.wanted):
            self.place = 0
            self.hits.append(message.get("id"))

    def was(self, request: Obj) -> bool:
        return request.get("id") in self.hits


def after(*wanted: When, change: Callable[[Obj, Obj], Any]) -> Fault:
    """The answer to the last of these requests is changed."""

    def install() -> None:
        sequence = Sequence(*wanted)
        sequence.install()
        on_answer(sequence.was, change)()

    return install


class Count:
    """Every so many such requests of the process."""

    def __init__(self, when: When, every: int) -> None:
        self.when = when
        self.every = every
        self.seen = 0
        self.hits: list[Any] = []

    def install(self) -> None:
        def listen(value: Any) -> Any:
            if isinstance(value, dict) and "id" in value and self.when(value):
                self.seen += 1
                if self.seen % self.every == 0:
                    self.hits.append(value["id"])
            return value

        hear(listen)


def at_every(count: int, when: When, change: Callable[[Obj, Obj], Any]) -> Fault:
    def install() -> None:
        counted = Count(when, count)
        counted.install()
        on_answer(lambda request: request.get("id") in counted.hits, change)()

    return install


def without(*names: str) -> Callable[[Any], None]:
    def change(result: Any) -> None:
        for name in names:
            result.pop(name, None)

    return change


def lost(message: Obj, request: Obj) -> Any:
    return NOTHING


def twice(message: Obj, request: Obj) -> Any:
    return Several(message, message)


def other_id(message: Obj, request: Obj) -> Any:
    return {**message, "id": f"{message['id']}-other"}


def empty_result(message: Obj, request: Obj) -> Any:
    return {**message, "result": {}} if "result" in message else message


def both(message: Obj, request: Obj) -> Any:
    return {**message, "error": {"code": -32603, "message": "both"}}


def arguments_of(request: Obj) -> Obj:
    found = params_of(request).get("arguments")
    return found if isinstance(found, dict) else {}


def has_token(request: Obj) -> bool:
    meta = params_of(request).get("_meta")
    return isinstance(meta, dict) and "progressToken" in meta
