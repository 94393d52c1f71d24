"""A tour of a server: everything that is safe to ask of one that nobody prepared for it.

Only what the server declares is asked for. A tool is called only if it says that it is read-only,
or if the user names it. One bad answer costs one step; only a server that is gone ends the tour.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from mcptest.core.errors import GONE, ErrorKind, McptestError, PeerError, UsageError
from mcptest.core.message import Kind, Message, json_type
from mcptest.core.redaction import redaction
from mcptest.core.revision import Era, Revision
from mcptest.core.safe_text import show
from mcptest.rules.protocol import member_at
from mcptest.schema.tool_inputs import plausible_arguments, prompt_arguments
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.session.client import Client, Reply
from mcptest.session.pages import LIST_MEMBERS, EndlessPages, named_items
from mcptest.session.tool_safety import is_safe
from mcptest.transport.capture_file import open_capture
from mcptest.transport.files import is_special, replace_file
from mcptest.transport.recorder import Recorder
from mcptest.wire.capture_forms import exchanges_of

_READS = 3
_UNUSABLE = 10
"""So many tools whose schemas can't be checked are named."""


StepOutcome: TypeAlias = Literal["done", "refused", "skipped", "doubtful", "malformed", "failed"]


@dataclass(frozen=True, slots=True)
class SessionBegan:
    """The handshake or discovery went well."""

    revision: Revision
    server: str
    capabilities: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class StepTaken:
    """One thing was asked of the server.

    `refused` is an error answer, which a server may well give; `malformed` is one whose form no
    client should accept, `doubtful` one that clients may read in different ways; `failed` means
    that there was no usable answer, or no way to ask.
    """

    what: str
    outcome: StepOutcome
    detail: str = ""


Event: TypeAlias = SessionBegan | StepTaken


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for beyond the safe default."""

    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    reads: tuple[str, ...] = ()


NO_WISHES = Wishes()


def tour(client: Client, wishes: Wishes = NO_WISHES) -> Iterator[Event]:
    """Ask everything that is safe, in a fixed order; raises PeerError once the server is gone."""
    server = client.server
    name = server.info.get("name")
    yield SessionBegan(
        client.revision,
        show(str(name), 60) if name else "a server without a name",
        tuple(show(str(key), 40) for key in server.capabilities),
        client.met.reason,
    )
    first = client.beginning
    odd = _oddity(first.method, first) if first is not None else None
    if odd is not None:
        yield odd
    if client.revision.era is Era.HANDSHAKE:
        yield _ask("ping", lambda: client.request("ping"))
    if client.declares("logging"):
        yield _settle("logging level", lambda: client.log_level("info"), "info")
    yield from _tools(client, wishes)
    yield from _resources(client, wishes)
    yield from _prompts(client)
    for answer in client.connection.second_answers():
        shown = show(answer.raw, 200)
        detail = f"the server answered a request twice; the second response is ignored: {shown}"
        yield StepTaken(f"request {show(repr(answer.id), 40)}", "doubtful", detail)


def _oddity(what: str, reply: Reply) -> StepTaken | None:
    """What is wrong with the form of an answer, if anything is."""
    faults = reply.faults
    if faults.refused:
        return StepTaken(what, "malformed", f"the response is malformed: {faults.refused}")
    if faults.warned:
        return StepTaken(what, "doubtful", f"the response is doubtful: {faults.warned}")
    return None


def _take(what: str, step: Callable[[], StepTaken]) -> StepTaken:
    """Take one step; only a peer that is gone is not survived."""
    try:
        return step()
    except PeerError as error:
        if error.kind in GONE:
            raise
        is_endless = isinstance(error, EndlessPages)
        return StepTaken(what, "malformed" if is_endless else "failed", error.message)


def _ask(
    what: str, ask: Callable[[], Reply], about: Callable[[Reply], str] = lambda _: ""
) -> StepTaken:
    """Take a step that is one request."""

    def step() -> StepTaken:
        reply = ask()
        odd = _oddity(what, reply)
        if odd is not None:
            return odd
        if not reply.ok:
            return StepTaken(what, "refused", _refusal(reply.message))
        return StepTaken(what, "done", about(reply))

    return _take(what, step)


def _settle(what: str, ask: Callable[[], Message | None], about: str = "") -> StepTaken:
    """The same for what need not be answered."""

    def step() -> StepTaken:
        answer = ask()
        if answer is not None and answer.kind is not Kind.RESULT:
            return StepTaken(what, "refused", _refusal(answer))
        return StepTaken(what, "done", about)

    return _take(what, step)


def _refusal(answer: Message) -> str:
    error = answer.error
    if not isinstance(error, dict):
        return "the response is not a valid message: " + show(answer.raw or str(answer.value), 120)
    return f"{show(str(error.get('code')), 20)} {show(str(error.get('message')), 120)}"


def _walk(client: Client, method: str, found: list[Any]) -> Event:
    """All pages of a list; what they name is added to `found`."""
    member = LIST_MEMBERS[method]
    pages = 0

    def walk() -> Reply:
        nonlocal pages
        reply = None
        for reply in client.walk(method, found):
            pages += 1
            items = reply.result.get(member)
            if reply.ok and not isinstance(items, list) and not reply.faults.refused:
                raise PeerError(ErrorKind.PROTOCOL, f"{member} is {json_type(items)}, not an array")
        assert reply is not None  # a walk has at least one page
        return reply

    return _ask(method, walk, lambda _: f"{len(found)} in {pages} page{'s' * (pages != 1)}")


# -- tools ---------------------------------------------------------------------------------


def _tools(client: Client, wishes: Wishes) -> Iterator[Event]:
    if not client.declares("tools"):
        return
    tools: list[Any] = []
    yield _walk(client, "tools/list", tools)
    calls, unusable = (wishes.calls, ()) if wishes.calls else _safe_call(tools)
    yield from unusable
    if not calls and not unusable:
        detail = "no tool is marked readOnlyHint; name one with --call NAME='{…}'"
        yield StepTaken("tools/call", "skipped", detail)
    for name, arguments in calls:
        yield _ask(
            f"tools/call {show(name, 60)}",
            partial(client.call_tool, name, arguments, progress_token=f"mcptest-{name}"),
            lambda reply: "isError" if reply.result.get("isError") is True else "",
        )


def _safe_call(
    tools: list[Any],
) -> tuple[tuple[tuple[str, Mapping[str, Any]], ...], tuple[StepTaken, ...]]:
    """The first tool that says it only reads, with an input that its own schema accepts; and the
    tools before it whose schemas can't be checked."""
    unusable: list[StepTaken] = []
    for tool in named_items(tools):
        name, schema = tool["name"], tool.get("inputSchema")
        if not is_safe(tool) or not isinstance(schema, dict):
            continue
        arguments = plausible_arguments(schema)
        try:
            if CompiledSchema(schema).fits(arguments):
                return ((name, arguments),), tuple(unusable)
        except SchemaLimitError as error:
            detail = f"not called: its inputSchema can't be checked: {error}"
            unusable.append(StepTaken(f"tools/call {show(name, 60)}", "failed", detail))
        except SchemaError:
            pass  # whether the schema is at fault is for the rules to say
    return (), tuple(unusable[:_UNUSABLE])


# -- resources -----------------------------------------------------------------------------


def _resources(client: Client, wishes: Wishes) -> Iterator[Event]:
    if not client.declares("resources"):
        return
    resources: list[Any] = []
    yield _walk(client, "resources/list", resources)
    yield _walk(client, "resources/templates/list", [])
    listed = [one["uri"] for one in named_items(resources, "uri")]
    uris = wishes.reads or listed[:_READS]
    for uri in uris:
        yield _ask(f"resources/read {show(uri, 80)}", partial(client.read_resource, uri))
    declared = client.server.capabilities.get("resources")
    if uris and isinstance(declared, dict) and declared.get("subscribe") is True:

        def subscribe() -> Message | None:
            """Subscribe and unsubscribe; the answer that says no, or the last one."""
            subscription = client.subscribe(uris[0])
            answer = subscription.answer
            if answer is None or answer.kind is Kind.RESULT:
                return client.unsubscribe(subscription)
            return answer

        yield _settle(f"subscription to {show(uris[0], 80)}", subscribe)


# -- prompts -------------------------------------------------------------------------------


def _prompts(client: Client) -> Iterator[Event]:
    if not client.declares("prompts"):
        return
    prompts: list[Any] = []
    yield _walk(client, "prompts/list", prompts)
    first = next((each for each in prompts if isinstance(each, dict)), None)
    if first is None or not isinstance(first.get("name"), str):
        return
    name = first["name"]
    # Prompt arguments are strings: each required one gets its own name.
    arguments = {one: one for one in prompt_arguments(first)}
    yield _ask(f"prompts/get {show(name, 60)}", partial(client.get_prompt, name, arguments or None))
    argument = member_at(first, "arguments", "0", "name")
    if isinstance(argument, str) and client.declares("completions"):
        reference, asked = {"type": "ref/prompt", "name": name}, {"name": argument, "value": ""}
        yield _ask("completion/complete", lambda: client.complete(reference, asked))


# -- Where a session is recorded -----------------------------------------------------------------

Form: TypeAlias = Literal["full", "exchanges"]


def recorder_for(path: Path, form: Form) -> Recorder:
    """The public form is made from a full capture that is written beside it first."""
    if form == "full":
        return Recorder(path, masker=redaction.masker)
    if path.is_dir():
        raise UsageError(f"can't write the capture {path}: it is a folder")
    return Recorder(beside(path, "recording"), masker=redaction.masker)


def beside(path: Path, what: str) -> Path:
    """A file of ours beside that one; elsewhere, where it is a pipe or a device."""
    if is_special(path):
        return Path(tempfile.gettempdir(), f"mcptest-{os.urandom(8).hex()}.{what}")
    return path.with_name(f".{path.name}.{what}")


@contextlib.contextmanager
def recording(recorder: Recorder, path: Path) -> Iterator[None]:
    """Until the end of the block; then what was recorded is there in the form that was wanted."""
    try:
        with recorder:
            yield
    finally:
        if recorder.path != path:
            _settle_exchanges(recorder, path)


def _settle_exchanges(recorder: Recorder, path: Path) -> None:
    """Write the public form of what was recorded, then remove the full form.

    A capture that is not complete stays in its full form, which says where it ends.
    """
    if not recorder.kept or recorder.error is not None:
        return
    if recorder.spare_older and path.is_file():
        recorder.kept = False
        recorder.path.unlink()
        return
    try:
        sources = open_capture(str(recorder.path))
        sessions = [exchanges_of(record for _, record in source.records) for source in sources]
        answered = [one for one in sessions if any("response" in e for e in one["exchanges"])]
        # A probe that drove the server away is no session that anyone had.
        kept = answered or sessions[-1:]
        document = kept[0] if len(kept) == 1 else kept
        replace_file(path, msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
    except UsageError as error:
        # No usage error: the session was had.
        hint = f"the recording is in {recorder.path}"
        raise McptestError(error.message, hint=hint) from None
    recorder.path.unlink()
