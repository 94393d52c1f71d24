"""The audit of a server that nobody wrote a test for: everything that is safe is called once."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mcptest.core.errors import PeerError
from mcptest.core.message import json_type
from mcptest.core.safe_text import show
from mcptest.probe.hint_checks import Verifier, claimed
from mcptest.probe.live_server import OutcomeKind, RequestOutcome, Subject, head_of
from mcptest.report.audit import (
    ITEM_TYPES,
    ONLY_AS_TASK,
    AuditedPrompt,
    AuditedResource,
    AuditedTemplate,
    AuditedTool,
    AuditItem,
    AuditReport,
    Claim,
    Health,
    broken_claims,
)
from mcptest.report.head import ItemKind
from mcptest.rules.protocol import member_at
from mcptest.schema.tool_inputs import (
    FixturePaths,
    PlausibleInput,
    expanded,
    input_for,
    looks_internal,
    prompt_arguments,
    structured_misfit,
    template_variables,
)
from mcptest.session.connection import Stopped
from mcptest.session.pages import ITEM_NAMES, Offer
from mcptest.session.tool_safety import may_call, runs_only_as_task, why_not
from mcptest.suite.observed import text_of

_Item = TypeVar("_Item", bound=AuditItem)
_READS = 100
_SHOWN = 1_000
_SLOW_MS = 2_000
_SOON_MS = 500
_MOST_VERIFIED = 200
_NO_TEXT = frozenset({"", "null", "[]", "{}"})
_CONTENT = ("content", "structuredContent", "messages", "contents")
REFUSES_MADE_UP = "rejects a generated value"
DOUBTFUL = "its response is doubtful"
_HEALTH = {
    OutcomeKind.HEALTHY: Health.HEALTHY,
    OutcomeKind.TOOL_ERROR: Health.HEALTHY,
    OutcomeKind.REFUSED: Health.REFUSED,
    OutcomeKind.CRASHED: Health.CRASHED,
    OutcomeKind.HUNG: Health.TIMED_OUT,
    OutcomeKind.PROTOCOL: Health.PROTOCOL,
}


class AuditOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be audited and how."""

    include_writes: bool = False
    """Also call what does not say that it only reads."""
    allow_tools: frozenset[str] = frozenset()
    """Also call these."""
    tools: tuple[str, ...] = ()
    """Only these tools, and neither prompts nor resources."""
    verify: bool = True
    """Hold annotations against what happens."""
    fixture: Path | None = None
    """The folder that the server works on, if it is known."""
    ground: FixturePaths | None = None
    min_score: int | None = None
    timeout: float = 15.0
    repeat: str = ""
    """The command that audits this server again; ` --tool NAME` is added."""


class Audit:
    """One audit. Read `items` to the end, then ask for the report."""

    def __init__(self, subject: Subject, order: AuditOrder) -> None:
        self._subject = subject
        self._order = order
        self.offer = Offer()
        self._items: list[AuditItem] = []
        self._notes: list[str] = []
        self._reads: Counter[ItemKind] = Counter()
        self._begun = time.monotonic()
        self.interrupted = False

    def meet(self) -> int:
        """Read the lists; how many items there are. Raises PeerError when unreachable."""
        # Facts of the first session, which may not be there any more when they are reported.
        client = self._subject.client
        self._facts = client.server.info
        self._capabilities = client.server.capabilities
        self._met = client.met
        self.offer = self._subject.offer()
        return sum(1 for _ in self._plan())

    def items(self) -> Iterator[AuditItem]:
        """Audit one after the other. Being stopped ends it early, and the report says so."""
        try:
            for kind, name, what in self._plan():
                if not name:
                    words = show(str(what or json_type(what)), 80)
                    detail = f"the list has an entry without a name: {words}"
                    health = Health.PROTOCOL
                    item = ITEM_TYPES[kind](name="(no name)", health=health, detail=detail)
                else:
                    ask = {"tool": self._tool, "prompt": self._prompt}.get(kind, self._resource)
                    about = what.get("description")
                    about = about if isinstance(about, str) else ""
                    item = replace(ask(kind, name, what), description=about)
                self._items.append(item)
                yield item
            if self._order.verify:
                self._verify()
        except Stopped:
            self.interrupted = True

    def report(self, out_of_time: str = "") -> AuditReport:
        """`out_of_time`: that this is why it was stopped, in words."""
        mask = self._subject.masker.text
        planned = sum(1 for _ in self._plan())
        unreached = planned - len(self._items) if out_of_time else 0
        if out_of_time:
            missing = f"{unreached} of {planned} items not reached"
            unverified = "not all tool hints were verified"
            self._notes.append(f"{out_of_time}: {missing if unreached else unverified}")
        return AuditReport(
            **head_of(self._subject.target, self._facts, self._met, self._begun),
            tools=self._of(AuditedTool),
            prompts=self._of(AuditedPrompt),
            resources=self._of(AuditedResource),
            templates=self._of(AuditedTemplate),
            problems={name: mask(text) for name, text in self.offer.problems.items()},
            notes=(*self._notes, *self._subject.notes),
            min_score=self._order.min_score,
            restarts=self._subject.restarts,
            interrupted=self.interrupted and not out_of_time,
            unreached=unreached,
        )

    def _of(self, kind: type[_Item]) -> tuple[_Item, ...]:
        return tuple(item for item in self._items if isinstance(item, kind))

    # -- what there is to do ---------------------------------------------------------------

    def _plan(self) -> Iterator[tuple[ItemKind, str, Mapping[str, Any]]]:
        offer, wanted = self.offer, self._order.tools
        for kind, (method, items) in zip(ITEM_TYPES, offer.lists.items(), strict=True):
            for item in items if kind == "tool" or not wanted else ():
                name = _named(item, ITEM_NAMES[method])
                if not wanted or name in wanted:
                    yield kind, name, item if isinstance(item, dict) else {}

    # -- tools -----------------------------------------------------------------------------

    def _tool(self, _: ItemKind, name: str, tool: Mapping[str, Any]) -> AuditItem:
        skipped = AuditedTool(name=name, health=Health.SKIPPED)
        if runs_only_as_task(tool):
            return replace(skipped, detail=ONLY_AS_TASK)
        reason = why_not(tool)
        if not (self._order.include_writes or may_call(tool, self._order.allow_tools)):
            return replace(skipped, detail=reason)
        made = input_for(tool, self._order.ground)
        outcome = self._subject.call(name, made.arguments, timeout=self._order.timeout)
        item = self._item("tool", name, outcome, made)
        if outcome.reply is None or not outcome.kind.is_healthy:
            return item
        misfit = structured_misfit(tool, outcome.reply.result)
        if not misfit:
            return item
        mask = self._subject.masker.text
        proof = _shown(outcome.sent, mask), _shown(outcome.received, mask)
        findings = (mask(misfit), *item.findings)
        return replace(item, findings=findings, sent=proof[0], received=proof[1])

    def _item(
        self, kind: ItemKind, name: str, outcome: RequestOutcome, made: PlausibleInput
    ) -> AuditItem:
        """The item that an outcome makes; a server that dies of it after its answer crashed too."""
        health, detail = _HEALTH[outcome.kind], outcome.detail
        notes = [made.doubt] if made.doubt else []
        stderr = outcome.stderr
        if outcome.reply is not None:
            aftermath = self._subject.aftermath(self._order.timeout)
            if aftermath is not None:
                health = _HEALTH[aftermath.kind]
                detail = f"it answered, but then: {aftermath.detail}"
                stderr = (*stderr, *aftermath.stderr)
            if outcome.reply.faults.warned:
                notes.append(f"{DOUBTFUL}: {outcome.reply.faults.warned}")
        reply = outcome.reply
        result = reply.result if reply is not None else {}
        text = text_of("tools/call", reply.message.result) if reply is not None else ""
        is_error = outcome.kind is OutcomeKind.TOOL_ERROR
        if is_error and looks_internal(detail):
            notes.append("the error that it reports exposes internals of the server")
        mask = self._subject.masker.text
        bad = health not in (Health.HEALTHY, Health.SKIPPED)
        one = f" --tool {shlex.quote(show(name, 200))}" if kind == "tool" else ""
        return ITEM_TYPES[kind](
            name=name,
            health=health,
            detail=mask(detail),
            input=made.arguments,
            is_error=is_error,
            worked=not (bad or is_error or made.unchecked),
            has_content=any(result.get(member) for member in _CONTENT),
            has_text=kind == "tool" and text.strip() not in _NO_TEXT,
            duration_ms=round(outcome.duration_ms),
            asks_back=outcome.asked_back,
            notes=tuple(map(mask, notes)),
            findings=(mask(made.unchecked),) if made.unchecked else (),
            unchecked=mask(made.unchecked),
            sent=_shown(outcome.sent, mask) if bad else "",
            received=_shown(outcome.received, mask) if bad else "",
            stderr=tuple(show(mask(line), 300) for line in stderr) if bad else (),
            repeat=self._order.repeat + one if self._order.repeat else "",
        )

    # -- prompts and resources -------------------------------------------------------------

    def _prompt(self, _: ItemKind, name: str, prompt: Mapping[str, Any]) -> AuditItem:
        reference = {"type": "ref/prompt", "name": name}
        names = prompt_arguments(prompt)

        def ask(values: Mapping[str, str]) -> tuple[RequestOutcome, PlausibleInput]:
            params = {"name": name, **({"arguments": values} if values else {})}
            return self._ask("prompts/get", params), PlausibleInput(values)

        return self._guessed("prompt", name, reference, names, ask)

    def _resource(self, kind: ItemKind, name: str, _: Mapping[str, Any]) -> AuditItem:
        self._reads[kind] += 1
        if self._reads[kind] > _READS:
            detail = f"only the first {_READS} were read"
            return ITEM_TYPES[kind](name=name, health=Health.SKIPPED, detail=detail)
        reference = {"type": "ref/resource", "uri": name}
        names = template_variables(name) if kind == "template" else ()

        def ask(values: Mapping[str, str]) -> tuple[RequestOutcome, PlausibleInput]:
            made = {"uri": expanded(name, values) if kind == "template" else name}
            return self._ask("resources/read", made), PlausibleInput(made)

        return self._guessed(kind, name, reference, names, ask)

    def _guessed(
        self,
        kind: ItemKind,
        name: str,
        reference: Mapping[str, str],
        names: tuple[str, ...],
        ask: Callable[[Mapping[str, str]], tuple[RequestOutcome, PlausibleInput]],
    ) -> AuditItem:
        """Ask with values that nothing describes: what the server completes, the name, or 1.

        To refuse a value that was made up is no fault, whatever the code is.
        """
        known = {one: self._completion(reference, one) for one in names}
        outcome, made = ask({one: value or one for one, value in known.items()})
        if not names or outcome.reply is None or outcome.kind.is_healthy:
            return self._item(kind, name, outcome, made)
        if not all(known.values()):
            outcome, made = ask({one: value or "1" for one, value in known.items()})
        item = self._item(kind, name, outcome, made)
        if outcome.kind not in (OutcomeKind.REFUSED, OutcomeKind.CRASHED) or outcome.reply is None:
            return item
        if item.detail != self._subject.masker.text(outcome.detail):
            return item  # it answered, and then something happened to it
        internal = outcome.kind is OutcomeKind.CRASHED
        notes = (
            *item.notes,
            *(
                ("it rejects the input with an internal error instead of isError or -32602",)
                if internal
                else ()
            ),
        )
        detail = f"{REFUSES_MADE_UP}: {item.detail}"
        return replace(item, health=Health.HEALTHY, worked=False, detail=detail, notes=notes)

    def _ask(self, method: str, params: Mapping[str, Any]) -> RequestOutcome:
        return self._subject.ask(method, params, timeout=self._order.timeout)

    def _completion(self, reference: Mapping[str, str], name: str) -> str:
        if not isinstance(self._capabilities.get("completions"), dict):
            return ""
        params = {"ref": reference, "argument": {"name": name, "value": ""}}
        outcome = self._ask("completion/complete", params)
        if outcome.reply is None:
            return ""
        first = member_at(outcome.reply.result, "completion", "values", "0")
        return first if isinstance(first, str) else ""

    # -- annotations -----------------------------------------------------------------------

    def _verify(self) -> None:
        tools = {_named(tool, "name"): tool for tool in self.offer.tools}
        # Tools whose answers may show what others changed: they only read, take no arguments,
        # answered, and did so soon.
        witnesses = tuple(
            item.name
            for item in self._items
            if item.kind == "tool" and item.worked and item.duration_ms <= _SOON_MS
            if not item.input and not why_not(tools[item.name])
        )
        verifier = Verifier(self._subject, self.offer, self._order.fixture, witnesses)
        verified = 0
        for place, item in enumerate(self._items):
            if item.kind != "tool" or item.health is not Health.HEALTHY:
                continue
            if verified == _MOST_VERIFIED:
                self._notes.append(f"the hints of the first {_MOST_VERIFIED} tools were verified")
                return
            claims = self._claims(verifier, tools[item.name], item)
            verified += bool(claims)
            findings = (*broken_claims(claims), *item.findings)
            self._items[place] = replace(item, claims=claims, findings=findings)

    def _claims(
        self, verifier: Verifier, tool: Mapping[str, Any], item: AuditItem
    ) -> tuple[Claim, ...]:
        made = claimed(tool)
        if item.duration_ms > _SLOW_MS and made:
            slow = f"it took {item.duration_ms / 1000:.0f}s and was not called again"
            return (Claim(made[0], None, slow),)
        try:
            return verifier.claims(tool, item.input, self._order.timeout)
        except PeerError as error:
            return (Claim(made[0], None, f"the server had exited: {error.message}"),)


def _named(item: Any, member: str) -> str:
    name = item.get(member) if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


def _shown(raw: bytes, mask: Callable[[str], str]) -> str:
    return show(mask(raw[: 4 * _SHOWN].decode("utf-8", "backslashreplace")), _SHOWN)
