"""Named probes, taken: what each action does, step after step, and the facts that follow.

Nothing here judges. What could not be seen is said to be so, for the whole probe or for one fact.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from mcptest.core.errors import PeerError
from mcptest.core.limits import Deadline
from mcptest.core.message import ABSENT, id_key
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import Asked, Conversation, Started, http_facts
from mcptest.probe.compliance.course import Course, Taken, Unobserved, set_going
from mcptest.probe.compliance.observed_facts import (
    ACKNOWLEDGED,
    FACTS,
    KINDS_OF_CHANGE,
    challenge_parameters,
    created,
    has_ended,
    is_beyond_counter_offer,
    is_streamed,
    session_id,
    stream_of,
    subscription_of,
    unasked_answer,
)
from mcptest.probe.compliance.questions import slow_machine
from mcptest.probe.compliance.site import Site
from mcptest.rules.corpus.probes import Action, Probe, ProbeStep, StepOptions, placeholders
from mcptest.rules.protocol import member_at, object_at
from mcptest.session.answers import answers_for
from mcptest.session.connection import Pending
from mcptest.session.pages import (
    LIST_CAPABILITIES,
    LIST_MEMBERS,
    EndlessPages,
    is_declared,
    walk_pages,
)
from mcptest.session.tape import Room, Tape
from mcptest.suite.model import Expectation
from mcptest.suite.observed import SeenExchange
from mcptest.suite.sent_message import SentCheck
from mcptest.transport.egress import parse_url
from mcptest.transport.http.transports import StreamableHttp
from mcptest.wire.envelope import decode
from mcptest.wire.mcp_headers import PARAM_PREFIX, header_annotations

__all__ = ["Probed", "Unobserved", "is_taken_aside", "prepare_probes", "run_probe", "take_probe"]

_STEP_OR_FACT = re.compile(r"(steps|probe)\.([a-z][a-z0-9_]*)")


class Probed(msgspec.Struct, frozen=True):
    exchange: SeenExchange
    """With the exchanges of all steps that were taken, and every fact that could be worked out."""
    evidence: tuple[Asked, ...]
    unobserved: Mapping[str, Unobserved] = msgspec.field(default_factory=dict)
    """Facts that could not be."""

    def why_unobserved(self, expect: Sequence[Expectation]) -> Unobserved | None:
        """Why a rule with these expectations can't be judged by what was seen, if so."""
        for one in expect:
            found = _STEP_OR_FACT.match(one.target)
            if found is None:
                continue
            kind, name = found.groups()
            if kind == "probe" and name in self.unobserved:
                return self.unobserved[name]
            if kind == "steps" and name not in self.exchange.steps:
                return Unobserved(f"the step {name} of the check could not run")
        return None


def run_probe(probe: Probe, site: Site) -> Probed:
    """What came of a probe, which may have been under way for some time.

    Raises Unobserved when there is nothing to see, and PeerError when the server can't be reached
    any more.
    """
    aside = site.aside.get(probe.name)
    if aside is not None:
        found: Probed = aside.result()
        return found
    tour = site.tour
    ends_it = probe.ends_connection and tour is not None and tour.usable
    return take_probe(probe, site, tour if ends_it else None)


def take_probe(
    probe: Probe, site: Site, home: Conversation | None = None, *, again: bool = False
) -> Probed:
    """Take it now: at home, where there is one, and there beside no other.

    What is taken `again` decides a verdict: it raises PeerError where a silence in it may be that
    of a busy machine.
    """
    course = Course(probe, site, home=home)
    try:
        for step in probe.steps:
            take(course, step)
        settle(course)
        for conversation in course.conversations if again else ():
            if (slow := slow_machine(site, conversation, again=True)) is not None:
                raise slow
    finally:
        course.close()
    facts: dict[str, Any] = {}
    unobserved: dict[str, Unobserved] = {}
    for name in probe.facts:
        try:
            facts[name] = FACTS[probe.name, name](course.seen)
        except Unobserved as nothing:
            unobserved[name] = nothing.with_traceback(None)
    if unobserved and not facts:
        raise next(iter(unobserved.values()))
    steps = {name: taken.exchange for name, taken in course.taken.items()}
    exchange = SeenExchange(steps=steps, facts=facts)
    return Probed(exchange, tuple(course.evidence), unobserved)


def prepare_probes(probes: Sequence[Probe], site: Site, idle: Conversation | None = None) -> None:
    """Set the servers going over which these probes will be taken.

    An idle connection is one that may be ended: starting another for that takes longer. Where
    others ask on it first, that comes last.

    Those that have connections of their own are taken on the side from now on, two at a time;
    slow ones wait more than they work, and so do not count.
    """
    together = [one for one in probes if not is_taken_aside(one)]
    needed = {"rude" if one.is_rude else "polite" for one in together}
    another = any(step.options.connection == "new" for one in together for step in one.steps)
    needed |= {"another"} if another else set()
    set_going(site, [one for one in ("polite", "rude", "another") if one in needed])
    is_shared = idle is not None and idle in site.shared.values()
    aside = [
        one
        for one in probes
        if is_taken_aside(one)
        and one.name not in site.aside
        and not (one.ends_connection and is_shared)
    ]
    if aside:
        pool = ThreadPoolExecutor(2 + sum(one.is_slow for one in aside), "mcptest-probe")
        for one in sorted(aside, key=lambda one: not one.is_slow):
            home = idle if one.ends_connection else None
            site.aside[one.name] = pool.submit(take_probe, one, site, home)
        pool.shutdown(wait=False)


def is_taken_aside(probe: Probe) -> bool:
    """Whether it shares no connection with anyone."""
    return probe.own_connection or all(step.options.connection == "bare" for step in probe.steps)


THE_NUMBER = 42


def with_integer_header(course: Course) -> None:
    """Have the tool called with 42, in an argument whose header may say 42.0 just as well."""
    unlocked_by = placeholders()["header_tool"].unlocked_by
    tool = course.site.known.get("header_tool")
    if tool is None:
        raise Unobserved("no tool has an x-mcp-header argument", unlocked_by)
    schema = course.site.header_schemas.of("tools/call", {"name": tool})
    for path, header, kind in header_annotations(schema):
        if path and isinstance(header, str) and kind == "integer":
            arguments = course.site.known.get("header_arguments")
            course.learned["header_name"] = PARAM_PREFIX + header
            course.learned["header_arguments"] = _with_value(arguments, path, THE_NUMBER)
            return
    reason = "no x-mcp-header argument is an integer"
    raise Unobserved(reason, f"{unlocked_by}, with an integer argument")


def _with_value(arguments: Any, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The arguments with one value put in, at any depth."""
    changed = dict(arguments) if isinstance(arguments, dict) else {}
    inner = changed
    for name in path[:-1]:
        below = inner.get(name)
        inner[name] = dict(below) if isinstance(below, dict) else {}
        inner = inner[name]
    inner[path[-1]] = value
    return changed


_ROUNDS = 5
_OTHER_ARGUMENT = {"mcptest_other": "other"}
_NOBODY_ASKED = {"mcptest_nobody_asked": {"action": "cancel"}}
_MALFORMED = "no object"


def with_other_arguments(course: Course, check: SentCheck) -> SentCheck:
    """The same call with arguments that its tool takes just as well."""
    params = dict(check.params or {})
    given = params.get("arguments")
    other = _other_argument(course, str(params.get("name")))
    params["arguments"] = {**(given if isinstance(given, Mapping) else {}), **other}
    return msgspec.structs.replace(check, params=params)


def _other_argument(course: Course, tool: str) -> Mapping[str, Any]:
    """A text for one of the tool's own arguments, or else one that its schema knows nothing of."""
    listed = course.taken["lists"].lists.get("tools/list", ()) if "lists" in course.taken else ()
    for one in listed:
        properties = object_at(one, "inputSchema", "properties")
        for name, each in properties.items() if member_at(one, "name") == tool else ():
            if member_at(each, "type") == "string" and "enum" not in each:
                return {name: "mcptest"}
    return _OTHER_ARGUMENT


def retry_with_input(course: Course, step: ProbeStep) -> None:
    """Repeat the request of an earlier step, with the answers that the step wants to be given."""
    options = step.options
    asked = course.seen.result(options.of)
    check = course.filled(next(one.send for one in course.probe.steps if one.name == options.of))
    if options.other_arguments:
        check = with_other_arguments(course, check)
    check = _with(check, _input(options, asked, check.declare))
    conversation = course.conversation_for(step)
    course.note(step.name, conversation.ask(check), conversation)


def complete_input(
    course: Course, name: str, check: SentCheck, conversation: Conversation, asked: Asked
) -> None:
    """Give what is asked for, until there is a final answer or it goes on for too long."""
    place = course.taken[name].begins
    questions = list(asked.exchange.asked)
    for _ in range(_ROUNDS):
        result = asked.exchange.result
        if not isinstance(result, dict) or result.get("resultType") != "input_required":
            break
        more = _input(StepOptions(), result, check.declare)
        asked = conversation.ask(_with(check, more))
        questions += asked.exchange.asked
        exchange = msgspec.structs.replace(asked.exchange, asked=tuple(questions))
        whole = msgspec.structs.replace(asked, exchange=exchange)
        course.note(name, whole, conversation, begins=place)


def _with(check: SentCheck, more: Mapping[str, Any]) -> SentCheck:
    return msgspec.structs.replace(check, params={**(check.params or {}), **more})


def _input(
    options: StepOptions, asked: Mapping[str, Any], declare: tuple[str, ...]
) -> Mapping[str, Any]:
    """What a retry adds to the params."""
    pairs = object_at(asked, "inputRequests").items()
    given: Any = {}
    if options.answers == "malformed":
        given = _MALFORMED
    elif options.answers != "none":
        given = {key: _answer(one, declare) for key, one in pairs}
        given |= _NOBODY_ASKED if options.answers == "with_extra" else {}
    more: dict[str, Any] = {"inputResponses": given}
    if "requestState" in asked:
        more["requestState"] = asked["requestState"]
    if options.tampered or options.other_arguments:
        state = asked.get("requestState")
        if not isinstance(state, str) or not state:
            unlocked_by = placeholders()["asking_tool"].unlocked_by
            raise Unobserved("the tool asks for input without a requestState", unlocked_by)
        more["requestState"] = _tampered(state) if options.tampered else state
    return more


def _tampered(state: str) -> str:
    """One character is another, in the middle: the ends may be padding that nobody looks at."""
    place = len(state) // 2
    other = "A" if state[place] != "A" else "B"
    return f"{state[:place]}{other}{state[place + 1 :]}"


def _answer(request: Any, declare: tuple[str, ...]) -> Any:
    method, params = member_at(request, "method"), object_at(request, "params")
    outcome = answers_for(declare).answer(str(method), params)
    # What we can't answer a user would have closed.
    return outcome.get("result", {"action": "cancel"})


# -- Subscriptions of the stateless era, and waiting for a change to be announced in either ------


def listen(course: Course, step: ProbeStep) -> None:
    """Open a subscription and wait until it is acknowledged, or can't be any more."""
    if not course.is_stateless:
        return  # there, every change is announced to everybody
    params = {"notifications": _filter(course, step)}
    check = SentCheck(method="subscriptions/listen", params=params)
    started = course.start(step, check, course.conversation_for(step))
    if step.options.together:
        return
    waiting = [one for one in course.under_way.values() if _is_subscription(one)]
    course.await_silence(started.conversation, lambda: all(map(_is_settled, waiting)))


def _filter(course: Course, step: ProbeStep) -> dict[str, Any]:
    """What is asked for: one kind, all kinds, or what the server says that it has."""
    if step.options.only:
        return {step.options.only: True}
    wanted = {
        kind: True
        for kind, capability in KINDS_OF_CHANGE.items()
        if kind != "resourceSubscriptions"
        and (step.options.everything or is_declared(capability, course.site.capabilities))
    }
    resource = course.site.known.get("first_resource")
    if resource is not None and (step.options.everything or not wanted):
        return {**wanted, "resourceSubscriptions": [resource]}
    return wanted or {"toolsListChanged": True}


def _is_subscription(started: Started) -> bool:
    return started.check.method == "subscriptions/listen"


def _is_settled(started: Started) -> bool:
    wanted = id_key(started.identifier)
    return started.done or any(
        isinstance(one, dict)
        and one.get("method") == ACKNOWLEDGED
        and id_key(subscription_of(one.get("params"))) == wanted
        for one in started.conversation.notifications
    )


def await_change(course: Course, step: ProbeStep) -> None:
    """Wait for the notification, as long as silence is waited for."""
    change = course.taken["change"]
    conversation = course.conversation_for(step)
    records = conversation.tape.records
    place = len(records)

    def has_come() -> bool:
        return any(one.method == step.options.only for one in change.came)

    course.await_silence(conversation, has_come)
    seen = SeenExchange(notifications=tuple(conversation.notifications))
    course.taken[step.name] = Taken(exchange=seen, records=records, begins=place)


def release(course: Course) -> None:
    """End the subscriptions that are open. What came of them is then known."""
    for name, started in list(course.under_way.items()):
        if _is_subscription(started):
            started.conversation.give_up(started)
            course.collect(name)


# -- Looking for the protected resource metadata of a server that asks for a token ---------------

_WELL_KNOWN = "/.well-known/oauth-protected-resource"


def fetch_metadata(course: Course, step: ProbeStep) -> None:
    """The document that the challenge names, or the one at the well-known places."""
    challenge = course.taken[step.options.of]
    status = (challenge.exchange.http or {}).get("status")
    if status != 401:
        reason = f"the server answered a request without a token with HTTP {status}"
        raise Unobserved(reason, "a server that requires a token")
    named = challenge_parameters(challenge.since).get("resource_metadata", "")
    for url in _places(course.site.order.target.url, named):
        fetched, body = _fetch(course, url)
        course.evidence.append(fetched)
        is_there = (fetched.exchange.http or {}).get("status") == 200
        document = decode(body).value if is_there else None  # a refusal may be JSON too
        if isinstance(document, dict):
            course.taken[step.name] = Taken(exchange=fetched.exchange, document=document)
            return
    course.taken[step.name] = Taken()


def _places(endpoint: str, named: str) -> Iterator[str]:
    """Where to look: on the origin that the user named."""
    home = parse_url(endpoint)
    if named:
        try:
            place = home.join(named)
        except ValueError as error:
            why = f"the challenge names {show(named, 80)}, which is not a URL: {error}"
            raise Unobserved(why) from None
        if place.origin != home.origin:
            raise Unobserved(f"the challenge names a document on another server: {show(named, 80)}")
        yield str(place)
        return
    path = home.target.partition("?")[0].rstrip("/")
    if path:
        yield str(home.join(_WELL_KNOWN + path))
    yield str(home.join(_WELL_KNOWN))


def _fetch(course: Course, url: str) -> tuple[Asked, bytes]:
    """GET a document. No header of the user's goes along: it is there for everybody."""
    tape, sent = Tape(room=Room()), f"GET {url}".encode()
    transport = StreamableHttp(url, sink=tape)
    deadline = Deadline.after(course.site.order.timeout)
    try:
        transport.open(deadline)
        stream = transport.request("GET", deadline, {"Accept": "application/json"})
        while stream not in tape.ended and transport.receive(deadline):
            pass
    except PeerError as error:
        return Asked(SeenExchange(), sent, error.message.encode()), b""
    finally:
        transport.close(deadline)
    body = next((frame.raw for frame in tape.bodies.get(stream, ())), b"")
    if stream not in tape.responses:
        return Asked(SeenExchange(), sent, body.rstrip()), body
    http = {**http_facts(tape, stream), "body": show(body, 4_000)}
    received = f"HTTP {http['status']} ".encode() + body
    return Asked(SeenExchange(http=http), sent, received.rstrip()), body


_MEMBERS: Final = {**LIST_MEMBERS, "tasks/list": "tasks"}


def walk_lists(course: Course, step: ProbeStep) -> None:
    """Every page of the lists that the server declares. The first pages are asked for at once."""
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    declared = [
        method
        for method, name in LIST_CAPABILITIES.items()
        if is_declared(name, course.site.capabilities)
    ]
    started = {
        method: conversation.start(SentCheck(method=method))
        for method in ([step.options.only] if step.options.only else declared)
    }
    lists: dict[str, list[Any]] = {}
    last: Asked | None = None
    for method, first in started.items():
        items, last = _walk(conversation, method, first)
        if items is not None:
            lists[method] = items
    if last is None:
        raise Unobserved("the server declares no lists", "a list of tools, prompts or resources")
    course.note(step.name, last, conversation, begins=place, lists=lists)


def _walk(
    conversation: Conversation, method: str, started: Started
) -> tuple[list[Any] | None, Asked]:
    """The items, as far as there are pages; None where the list can't be had at all."""
    items: list[Any] | None = None
    asked = conversation.finish(started)

    def ask(params: dict[str, Any] | None) -> Asked:
        check = SentCheck(method=method, params=params)
        return asked if params is None else conversation.ask(check)

    # That the pages never end is for the rules about paging to say.
    with contextlib.suppress(EndlessPages):
        pages = walk_pages(
            method, ask, lambda one: one.exchange.result, seconds=conversation.site.order.timeout
        )
        for asked in pages:
            result = asked.exchange.result
            page = result.get(_MEMBERS[method]) if isinstance(result, dict) else None
            if isinstance(page, list):
                items = [*(items or ()), *page]
    return items, asked


_SHORTEST_POLL = 0.01
_LONGEST_POLL = 0.5
_POLLING = 5.0
"""How many times our patience a task may take until it has ended."""


def take(course: Course, step: ProbeStep) -> None:
    """Take one step. Raises Unobserved when it can't be taken, and is not optional."""
    if step.options.needs and not is_declared(step.options.needs, course.site.capabilities):
        return
    offered = str((step.send.params or {}).get("protocolVersion"))
    if step.options.beyond and not is_beyond_counter_offer(offered, course.seen):
        return
    try:
        _ACTIONS[step.action](course, step)
    except Unobserved:
        if not step.options.optional:
            raise


# -- messages


def _request(course: Course, step: ProbeStep) -> None:
    check = _prepared(course, step)
    conversation = course.conversation_for(step)
    course.start(step, check, conversation)
    if not step.options.together:
        asked = course.collect(step.name)
        if step.options.complete:
            complete_input(course, step.name, check, conversation, asked)
        # Whether an event stream ends after its answer is part of what was asked.
        taken = course.taken[step.name]
        if course.probe.name == "streamed_answer" and is_streamed(taken):
            stream = stream_of(taken)
            course.await_silence(conversation, lambda: stream in conversation.tape.ended)
        _require_what_follows(step, asked)


def _prepared(course: Course, step: ProbeStep) -> SentCheck:
    """The check of a step, with what earlier steps found out."""
    options = step.options
    if options.integer_header:
        with_integer_header(course)
    if options.of and "{page_cursor}" in (step.send.params or {}).values():
        cursor = course.learned["page_cursor"] = course.seen.result(options.of).get("nextCursor")
        if not isinstance(cursor, str):
            unlocked_by = placeholders()["page_cursor"].unlocked_by
            raise Unobserved("the list of tools has only one page", unlocked_by)
    check = course.filled(step.send)
    if check.method.startswith("tasks/"):
        check = _with(check, _task_of(course, step))
    return with_other_arguments(course, check) if options.other_arguments else check


def _task_of(course: Course, step: ProbeStep) -> Mapping[str, Any]:
    return {"taskId": created(course.seen, step.options.of)["taskId"]}


def _require_what_follows(step: ProbeStep, asked: Asked) -> None:
    """Nothing that comes after it would mean anything without these."""
    result = object_at(asked.exchange.result)
    if step.name == "ask" and result.get("resultType") != "input_required":
        if "{asking_tool}" in str(step.send.params):
            unlocked_by = placeholders()["asking_tool"].unlocked_by
            raise Unobserved("the tool did not ask for input", unlocked_by)
    elif step.send.params and "task" in step.send.params:
        if "taskId" not in object_at(result, "task"):
            raise Unobserved("the server created no task for the call", "the fixture task_tool")
    elif step.options.other_arguments and result.get("resultType") != "input_required":
        reason = "the tool accepts no other arguments"
        raise Unobserved(reason, "the fixture asking_tool with an argument")


def _notification(course: Course, step: ProbeStep) -> None:
    conversation = course.conversation_for(step)
    course.note(step.name, conversation.notify(course.filled(step.send)), conversation)


def _raw(course: Course, step: ProbeStep) -> None:
    """What comes of it shows behind the answer to the next request, so it is collected later."""
    conversation = course.conversation_for(step)
    check = course.filled(step.send)
    if course.is_stateless and check.raw.startswith("["):
        items = msgspec.json.decode(check.raw)
        for item in items:  # nothing but the array may be wrong with what is sent
            item["params"] = conversation.lifecycle.prepare(item.get("params"))
        check = msgspec.structs.replace(check, raw=msgspec.json.encode(items).decode())
    course.start(step, check, conversation)


def _http(course: Course, step: ProbeStep) -> None:
    conversation = course.conversation_for(step)
    asked = course.note(step.name, conversation.ask(course.filled(step.send)), conversation)
    status = (asked.exchange.http or {}).get("status")
    if not isinstance(status, int) or status >= 300:
        reason = f"the server answered the request with HTTP {status}"
        raise Unobserved(reason, "a server that allows clients to end sessions")


def _begin(course: Course, step: ProbeStep) -> None:
    conversation = course.open()
    if session_id(conversation.tape.records) is None:
        raise Unobserved("the server issued no session id", "a server with sessions")
    course.taken[step.name] = Taken(records=conversation.tape.records)


# -- requests under way


def _start(course: Course, step: ProbeStep) -> None:
    course.start(step, _prepared(course, step), course.conversation_for(step))


def _cancel(course: Course, step: ProbeStep) -> None:
    started = list(course.under_way.values())[-1]
    records = started.conversation.tape.records
    course.taken[step.name] = Taken(records=records, begins=len(records))
    started.given_up = True
    started.conversation.give_up(started)


def _collect(course: Course, step: ProbeStep) -> None:
    if step.options.of in course.under_way:
        course.collect(step.options.of)
    course.taken[step.name] = course.taken[step.options.of]


def _poll(course: Course, step: ProbeStep) -> None:
    """Ask until the task has ended, as often as the server wants to be asked."""
    conversation = course.conversation_for(step)
    check = _with(course.filled(step.send), _task_of(course, step))
    deadline = Deadline.after(min(course.site.order.timeout, _POLLING * course.site.order.patience))
    place = len(conversation.tape.records)
    pause = _SHORTEST_POLL
    while True:
        asked = course.note(step.name, conversation.ask(check), conversation, begins=place)
        result = asked.exchange.result
        if not isinstance(result, dict) or has_ended(result.get("status")) or deadline.expired:
            return
        pause = min(2 * pause, _LONGEST_POLL)
        wanted = result.get("pollInterval")
        if isinstance(wanted, int | float) and not isinstance(wanted, bool) and wanted >= 0:
            pause = min(pause, wanted / 1000)
        conversation.pump(deadline.within(pause).remaining(), lambda: False)


# -- ends


def _close_stdin(course: Course, step: ProbeStep) -> None:
    conversation = course.conversation_for(step)
    place = len(conversation.tape.records)
    began = time.monotonic()
    # Half of the time goes to waiting for the process to leave by itself; whoever leaves sooner
    # is not waited for any longer.
    conversation.client.close(Deadline.after(course.site.waits.to_end))
    course.taken[step.name] = Taken(
        records=conversation.tape.records, begins=place, seconds=time.monotonic() - began
    )


def settle(course: Course) -> None:
    """Collect whatever is still under way, once every step was taken."""
    release(course)
    for name, started in list(course.under_way.items()):
        # Of bytes that are no message only an error without an id could come, over a pipe.
        is_noise = started.check.is_raw and started.stream is None
        if started.given_up or (is_noise and not any(map(_is_named, started.waiting))):
            del course.under_way[name]
            _note_without_waiting(course, name, started)
        else:
            _await_whole_batch(course, started)
            course.collect(name)
    for step in course.probe.steps:
        if step.action == "notification" and step.name in course.taken:
            _note_what_came_unasked(course, step.name)


def _is_named(pending: Pending) -> bool:
    return pending.id not in (None, ABSENT)


def _await_whole_batch(course: Course, started: Started) -> None:
    """Every id of an array is waited for, or an error for the array as a whole."""
    if not started.wants_all:
        return
    named = tuple(filter(_is_named, started.waiting))

    def is_over() -> bool:
        done = [one.done for one in named]
        return all(done) or sum(one.done for one in started.waiting) > sum(done)

    if course.await_silence(started.conversation, is_over):
        started.wants_all = False


def _note_without_waiting(course: Course, name: str, started: Started) -> None:
    conversation = started.conversation
    for pending in started.waiting:
        conversation.client.connection.forget(pending)
    course.note(name, conversation.seen(started), conversation)


def _note_what_came_unasked(course: Course, name: str) -> None:
    taken = course.taken[name]
    answer = unasked_answer(taken)
    result, error = (answer.result, answer.error) if answer is not None else (ABSENT, ABSENT)
    exchange = msgspec.structs.replace(taken.exchange, result=result, error=error)
    # Over a pipe the notification was noted before anything came: its proof has no bytes yet.
    received = course.site.masker.message(answer.raw) if answer is not None else b""
    for place, asked in enumerate(course.evidence):
        if asked.exchange is taken.exchange and not asked.received:
            course.evidence[place] = msgspec.structs.replace(asked, received=received)
    course.taken[name] = msgspec.structs.replace(taken, exchange=exchange)


_ACTIONS: Final[Mapping[Action, Callable[[Course, ProbeStep], None]]] = {
    "request": _request,
    "notification": _notification,
    "raw": _raw,
    "http": _http,
    "begin": _begin,
    "retry": retry_with_input,
    "start": _start,
    "cancel": _cancel,
    "collect": _collect,
    "poll": _poll,
    "listen": listen,
    "await_change": await_change,
    "walk_lists": walk_lists,
    "fetch_metadata": fetch_metadata,
    "close_stdin": _close_stdin,
}
