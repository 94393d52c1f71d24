"""What one scenario saw of a server, in order, for its checks. Pure: nothing in here asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from mcptest.model.capture import AnyRecord, Frame, SseEvent
from mcptest.model.message import ABSENT, Kind, Message, json_type
from mcptest.model.revision import Era, Revision
from mcptest.model.show import show
from mcptest.suite.exchange_targets import Exchange
from mcptest.wire.envelope import decode

Obj = dict[str, Any]
_SHOWN = 160


class Offered(msgspec.Struct, frozen=True):
    """What the server declares and lists, learned once for all scenarios."""

    capabilities: Mapping[str, Any] = {}
    tools: tuple[Any, ...] = ()
    prompts: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    templates: tuple[Any, ...] = ()
    endless: tuple[str, ...] = ()
    """Which lists could not be read to their end, and why."""

    def declares(self, path: str) -> bool:
        """`resources.subscribe`: each part is there, and none of them is false."""
        value: Any = self.capabilities
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value is not None and value is not False

    def has(self, kind: str, name: str) -> bool:
        """Whether it is listed: a `tool`, a `prompt` or a `resource`."""
        listed = {"tool": self.tools, "prompt": self.prompts, "resource": self.resources}[kind]
        key = "uri" if kind == "resource" else "name"
        return any(isinstance(one, Mapping) and one.get(key) == name for one in listed)

    def input_schema(self, tool: str) -> Mapping[str, Any]:
        """Of a tool that is listed; empty when it has none."""
        for one in self.tools:
            if isinstance(one, Mapping) and one.get("name") == tool:
                schema = one.get("inputSchema")
                return schema if isinstance(schema, Mapping) else {}
        return {}

    def prompt_arguments(self, prompt: str) -> dict[str, bool]:
        """The arguments of a prompt that is listed, and whether each is required."""
        for one in self.prompts:
            if isinstance(one, Mapping) and one.get("name") == prompt:
                arguments = one.get("arguments")
                return {
                    str(about.get("name")): about.get("required") is True
                    for about in (arguments if isinstance(arguments, list) else ())
                    if isinstance(about, Mapping)
                }
        return {}


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was asked, by its label, and what came of it."""

    label: str
    method: str
    exchange: Exchange
    received: bytes = b""
    """As it may be shown."""
    identifier: Any = ABSENT
    tape: int = 0
    """Which connection of the scenario."""
    begins: int = 0
    """The place in its records before anything was sent."""
    stream: int | None = None
    lost: str = ""
    """Why no answer could come any more; empty while the connection is fine."""
    trouble: str = ""
    """What came in place of the answer, or what became of its HTTP exchange."""

    @property
    def result(self) -> Obj:
        """The result, or an empty object when there is none that is one."""
        return self.exchange.result if isinstance(self.exchange.result, dict) else {}

    @property
    def error(self) -> Obj:
        return self.exchange.error if isinstance(self.exchange.error, dict) else {}

    @property
    def code(self) -> Any:
        return self.error.get("code")

    @property
    def status(self) -> int | None:
        status = (self.exchange.http or {}).get("status")
        return status if isinstance(status, int) else None

    def header(self, name: str) -> str | None:
        headers = (self.exchange.http or {}).get("headers") or {}
        value = headers.get(name)
        return value if isinstance(value, str) else None

    @property
    def answered(self) -> bool:
        return self.exchange.answer != "none"

    @property
    def without_result(self) -> str:
        """Why there is no result to look at, in words; empty when there is one."""
        if self.exchange.answer == "error":
            code, words = show(str(self.code), 20), show(str(self.error.get("message")), _SHOWN)
            return f"{self.method} was answered with the error {code}: {words}"
        if self.exchange.answer == "none":
            return self.silence
        if not isinstance(self.exchange.result, dict):
            return f"the result of {self.method} is {json_type(self.exchange.result)}, no object"
        return ""

    @property
    def without_success(self) -> str:
        """Why there is no result of a tool that did its work; empty when there is one."""
        if self.without_result or self.did_its_work:
            return self.without_result
        texts = [one.get("text") for one in _blocks(self.result)]
        said = show(" ".join(one for one in texts if isinstance(one, str)), _SHOWN)
        return f"the tool failed (isError: true){f': {said}' if said else ''}"

    @property
    def silence(self) -> str:
        """What came in place of an answer."""
        if self.lost:
            return f"{self.method} was not answered: {self.lost}"
        if self.trouble and self.status in {None, 200}:
            return f"{self.method} was not answered: {self.trouble}"
        if self.status is not None:
            body = show(str((self.exchange.http or {}).get("body", "")), _SHOWN)
            came = f"HTTP {self.status}" + (f" with {body!r}" if body else "")
            return f"{self.method} was answered with {came}, and no JSON-RPC message"
        return f"{self.method} was not answered"

    @property
    def did_its_work(self) -> bool:
        """A call that came to a tool, and did not fail there."""
        return bool(self.result) and self.result.get("isError") is not True

    @property
    def wants_input(self) -> bool:
        return self.result.get("resultType") == "input_required"


class Scene:
    """Everything that one scenario saw."""

    def __init__(
        self,
        *,
        revision: Revision,
        transport: str,
        offered: Offered | None = None,
        heard: Mapping[str, Heard] | None = None,
        tapes: Sequence[Sequence[AnyRecord]] = (),
        names: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.revision = revision
        self.transport = transport
        self.offered = offered or Offered()
        self.heard = dict(heard or {})
        self.tapes = tapes
        """Each up to where the scenario ended."""
        self.names = dict(names or {})
        """What the user calls a fixture, by its official name."""
        self.facts = dict(facts or {})

    def __getitem__(self, label: str) -> Heard:
        """What was heard under a label; where the script did not come so far, that is heard."""
        found = self.heard.get(label)
        return found if found is not None else _never(label)

    def __contains__(self, label: str) -> bool:
        return label in self.heard

    @property
    def is_stateless(self) -> bool:
        return self.revision.era is Era.STATELESS

    def fixture(self, name: str) -> str:
        return self.names.get(name, name)

    def records_since(self, label: str) -> Sequence[AnyRecord]:
        """What happened on the connection from when this was asked to the scenario's end."""
        heard = self[label]
        return self.tapes[heard.tape][heard.begins :] if heard.tape < len(self.tapes) else ()

    def said_since(self, label: str) -> Iterator[Message]:
        """Every message of the server from then on, whatever carried it."""
        for record in self.records_since(label):
            if isinstance(record, Frame) and record.sender == "server":
                message = decode(record.raw)
                yield from message.items if message.kind is Kind.BATCH else (message,)

    def notices(self, label: str, method: str) -> list[Obj]:
        """The params of the server's notifications of a method from then on."""
        return [
            one.params
            for one in self.said_since(label)
            if one.kind is Kind.NOTIFICATION and one.method == method
        ]

    def on_stream(self, label: str) -> list[Frame | SseEvent]:
        """What came on the HTTP stream of this request; on stdio, everything from then on."""
        stream = self[label].stream
        return [
            one
            for one in self.records_since(label)
            if (isinstance(one, SseEvent) and one.stream == stream)
            or (
                isinstance(one, Frame)
                and one.sender == "server"
                and (stream is None or one.stream == stream)
            )
        ]


def _blocks(result: Obj) -> list[Obj]:
    content = result.get("content")
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _never(label: str) -> Heard:
    return Heard(
        label=label, method=label, exchange=Exchange(), lost="the scenario did not get so far"
    )
