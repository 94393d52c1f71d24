"""A tour of a server: everything that is safe to ask of one that nobody prepared for it.

Only what the server declares is asked for. A tool is called only if it says that it is read-only,
or if the user names it. One bad answer costs one step; only a server that is gone ends the tour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from mcptest.explore.plausible import plausible_arguments
from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.events import Event, SessionBegan, StepTaken
from mcptest.model.message import Kind, Message, json_type
from mcptest.model.revision import Era
from mcptest.model.show import show
from mcptest.peer.client import Client, Reply
from mcptest.peer.pagination import LIST_MEMBERS, EndlessPages, distinct
from mcptest.peer.tool_safety import is_safe
from mcptest.schema.json_schema import CompiledSchema, SchemaError, SchemaLimitError

_READS = 3
_UNUSABLE = 10
"""So many tools whose schemas can't be checked are named."""
_GONE = frozenset({ErrorKind.EXITED, ErrorKind.CLOSED, ErrorKind.CONNECTION_REFUSED})


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
    yield from _logging(client)
    yield from _tools(client, wishes)
    yield from _resources(client, wishes)
    yield from _prompts(client)
    for answer in client.connection.second_answers():
        shown = show(answer.raw, 200)
        detail = f"it was answered twice; the second answer is ignored: {shown}"
        yield StepTaken(f"request {show(repr(answer.id), 40)}", "doubtful", detail)


def _oddity(what: str, reply: Reply) -> StepTaken | None:
    """What is wrong with the form of an answer, if anything is."""
    faults = reply.faults
    if faults.refused:
        return StepTaken(what, "malformed", f"the answer is malformed: {faults.refused}")
    if faults.warned:
        return StepTaken(what, "doubtful", f"the answer is doubtful: {faults.warned}")
    return None


def _ask(
    what: str, ask: Callable[[], Reply], about: Callable[[Reply], str] = lambda _: ""
) -> Event:
    """Take one step; only a peer that is gone is not survived."""
    try:
        reply = ask()
    except PeerError as error:
        if error.kind in _GONE:
            raise
        if isinstance(error, EndlessPages):
            return StepTaken(what, "malformed", error.message)
        return StepTaken(what, "failed", error.message)
    odd = _oddity(what, reply)
    if odd is not None:
        return odd
    if not reply.ok:
        return StepTaken(what, "refused", _refusal(reply.message))
    return StepTaken(what, "done", about(reply))


def _refusal(answer: Message) -> str:
    error = answer.error
    if not isinstance(error, dict):
        return "the answer is no valid message: " + show(answer.raw or str(answer.value), 120)
    return f"{show(str(error.get('code')), 20)} {show(str(error.get('message')), 120)}"


def _walk(client: Client, method: str, found: list[Any]) -> Event:
    """All pages of a list; what they name is added to `found`."""
    member = LIST_MEMBERS[method]
    pages = 0

    def walk() -> Reply:
        nonlocal pages
        reply = None
        try:
            for reply in client.pages(method):
                pages += 1
                items = reply.result.get(member)
                if isinstance(items, list):
                    found.extend(items)
                elif reply.ok and not reply.faults.refused:
                    raise PeerError(
                        ErrorKind.PROTOCOL, f"{member} is {json_type(items)}, not an array"
                    )
                if len(found) > client.connection.limits.items:
                    raise EndlessPages(
                        ErrorKind.PAGES_EXCEEDED, f"more than {len(found) - 1} {member}"
                    )
        except EndlessPages:
            found[:] = distinct(found)
            raise
        assert reply is not None  # a walk has at least one page
        return reply

    return _ask(method, walk, lambda _: f"{len(found)} in {pages} page{'s' * (pages != 1)}")


def _logging(client: Client) -> Iterator[Event]:
    if not client.declares("logging"):
        return
    try:
        answer = client.log_level("info")
    except PeerError as error:
        if error.kind in _GONE:
            raise
        yield StepTaken("logging level", "failed", error.message)
        return
    if answer is not None and answer.kind is not Kind.RESULT:
        yield StepTaken("logging level", "refused", _refusal(answer))
        return
    yield StepTaken("logging level", "done", "info")


# -- tools ---------------------------------------------------------------------------------


def _tools(client: Client, wishes: Wishes) -> Iterator[Event]:
    if not client.declares("tools"):
        return
    tools: list[Any] = []
    yield _walk(client, "tools/list", tools)
    calls, unusable = (wishes.calls, ()) if wishes.calls else _safe_call(tools)
    yield from unusable
    if not calls and not unusable:
        yield StepTaken(
            "tools/call",
            "skipped",
            "no tool says that it is read-only; name one with --call NAME='{…}'",
        )
    for name, arguments in calls:
        yield _ask(
            f"tools/call {show(name, 60)}",
            partial(client.call_tool, name, arguments, progress_token=f"mcptest-{name}"),
            lambda reply: "isError" if reply.result.get("isError") is True else "",
        )


_Calls: TypeAlias = tuple[tuple[str, Mapping[str, Any]], ...]


def _safe_call(tools: list[Any]) -> tuple[_Calls, tuple[StepTaken, ...]]:
    """The first tool that says it only reads, with an input that its own schema accepts; and the
    tools before it whose schemas can't be checked."""
    unusable: list[StepTaken] = []
    for tool in tools:
        if not isinstance(tool, dict) or not is_safe(tool):
            continue
        name, schema = tool.get("name"), tool.get("inputSchema")
        if not isinstance(name, str) or not isinstance(schema, dict):
            continue
        arguments = plausible_arguments(schema)
        try:
            if CompiledSchema(schema).fits(arguments):
                return ((name, arguments),), tuple(unusable)
        except SchemaLimitError as error:
            detail = f"it was not called: its inputSchema can't be checked: {error}"
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
    uris = wishes.reads or _uris(resources)[:_READS]
    for uri in uris:
        yield _ask(f"resources/read {show(uri, 80)}", partial(client.read_resource, uri))
    declared = client.server.capabilities.get("resources")
    if uris and isinstance(declared, dict) and declared.get("subscribe") is True:
        yield _subscription(client, uris[0])


def _uris(resources: list[Any]) -> tuple[str, ...]:
    uris = (each.get("uri") for each in resources if isinstance(each, dict))
    return tuple(uri for uri in uris if isinstance(uri, str))


def _subscription(client: Client, uri: str) -> Event:
    what = f"subscription to {show(uri, 80)}"
    try:
        subscription = client.subscribe(uri)
        answer = subscription.answer
        if answer is None or answer.kind is Kind.RESULT:
            answer = client.unsubscribe(subscription)
    except PeerError as error:
        if error.kind in _GONE:
            raise
        return StepTaken(what, "failed", error.message)
    if answer is not None and answer.kind is not Kind.RESULT:
        return StepTaken(what, "refused", _refusal(answer))
    return StepTaken(what, "done")


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
    arguments = _prompt_arguments(first)
    yield _ask(f"prompts/get {show(name, 60)}", partial(client.get_prompt, name, arguments or None))
    if client.declares("completions"):
        yield from _completion(client, first)


def _prompt_arguments(prompt: Mapping[str, Any]) -> dict[str, str]:
    """Prompt arguments are strings: each required one gets its own name."""
    declared = prompt.get("arguments")
    return {
        each["name"]: each["name"]
        for each in (declared if isinstance(declared, list) else ())
        if isinstance(each, dict) and isinstance(each.get("name"), str) and each.get("required")
    }


def _completion(client: Client, prompt: Mapping[str, Any]) -> Iterator[Event]:
    declared = prompt.get("arguments")
    first = declared[0] if isinstance(declared, list) and declared else None
    if not isinstance(first, dict) or not isinstance(first.get("name"), str):
        return
    reference = {"type": "ref/prompt", "name": prompt["name"]}
    argument = {"name": first["name"], "value": ""}
    yield _ask("completion/complete", lambda: client.complete(reference, argument))
