"""What a doctor notes while it listens: facts about every answer, each with its first proof.

Nothing in here asks anything. Answers are looked at as they come and not kept, so a server that
sends much costs no memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mcptest.model.compliance import Evidence
from mcptest.model.message import ABSENT
from mcptest.model.show import show
from mcptest.rules.migration import RESOURCE_NOT_FOUND
from mcptest.rules.migration_forms import is_meta_key
from mcptest.run.compliance.conversation import Asked

LONGEST_PROOF = 800
CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""The results that must say how long and for whom they are good."""
_LEAVING = frozenset(
    {"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/list"}
)
"""Methods that go as a whole: what their answers lack does not matter."""
_MOST_KINDS = 50
_MOST_ITEMS = 1_000


def shortest(found: Mapping[str, Evidence]) -> Evidence:
    """Of several proofs the one that is read fastest."""
    return min(found.values(), key=lambda one: len(one.received))


def proof(asked: Asked) -> Evidence:
    """What was sent and what came, safe to show and of bounded length."""
    return Evidence(show(asked.sent, LONGEST_PROOF), show(asked.received, LONGEST_PROOF))


class Watch:
    """Facts about all answers so far."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self.results = 0
        self.untyped: dict[str, Evidence] = {}
        """Methods whose results had no resultType."""
        self.cacheable = 0
        self.uncached: dict[str, Evidence] = {}
        self.codes: dict[int, Evidence] = {}
        self.meta_keys: dict[str, Evidence] = {}
        self.bad_meta_keys: dict[str, Evidence] = {}
        self.audio = 0
        self.bad_audio: Evidence | None = None
        self.log_messages: Evidence | None = None
        self.questions: dict[str, Evidence] = {}
        """Methods that the server asked of the client by a request of its own."""
        self.inputs: dict[str, Evidence] = {}
        """Methods that it asked for inside an input-required result."""

    def take(self, method: str, asked: Asked) -> Asked:
        """Look at an answer to a request that a client of its revision sends."""
        exchange = asked.exchange
        if isinstance(exchange.result, dict):
            self._take_result(method, exchange.result, asked)
        self.take_code(method, exchange.error, asked)
        self._take_log_messages(exchange.notifications, asked)
        return asked

    def _take_log_messages(self, notifications: Sequence[Any], asked: Asked) -> None:
        logged = (one for one in notifications if _method_of(one) == "notifications/message")
        first = next(logged, None)
        if first is not None and self.log_messages is None:
            self.log_messages = Evidence(show(asked.sent, LONGEST_PROOF), self._shown(first))

    def _shown(self, message: Any) -> str:
        """A message that came on its own; the standard library writes whatever it read."""
        return show(self._mask(json.dumps(message)), LONGEST_PROOF)

    def _take_result(self, method: str, result: Mapping[str, Any], asked: Asked) -> None:
        self.results += 1
        if not isinstance(result.get("resultType"), str) and method not in _LEAVING:
            _note(self.untyped, method, asked)
        if method in CACHEABLE and result.get("resultType") != "input_required":
            self.cacheable += 1
            if not _is_cache_hint(result):
                _note(self.uncached, method, asked)
        if result.get("resultType") == "input_required":
            for one in asked.exchange.asked:
                _note(self.inputs, _method_of(one), asked)
        self._take_meta(result, asked)
        self._take_audio(result, asked)

    def take_code(self, method: str, error: Any, asked: Asked) -> None:
        """Look at an error, whoever it was meant for."""
        code = error.get("code") if isinstance(error, dict) else None
        if type(code) is not int or len(self.codes) >= _MOST_KINDS:
            return
        if code == RESOURCE_NOT_FOUND and method.startswith("resources/"):
            return  # that one has an item of its own
        self.codes.setdefault(code, proof(asked))

    def _take_meta(self, result: Mapping[str, Any], asked: Asked) -> None:
        for meta in _metas(result):
            for key in list(meta)[:_MOST_ITEMS]:
                _note(self.meta_keys, str(key), asked)
                if not is_meta_key(str(key)):
                    _note(self.bad_meta_keys, str(key), asked)

    def _take_audio(self, result: Mapping[str, Any], asked: Asked) -> None:
        for block in _blocks(result):
            if block.get("type") == "audio":
                self.audio += 1
                sound = all(isinstance(block.get(name), str) for name in ("data", "mimeType"))
                if not sound and self.bad_audio is None:
                    self.bad_audio = proof(asked)

    def heard(self, method: str, raw: bytes) -> None:
        """Take note of a request of the server, given as bytes without secrets."""
        if method not in self.questions and len(self.questions) < _MOST_KINDS:
            self.questions[method] = Evidence("", show(raw, LONGEST_PROOF))


def _note(found: dict[str, Evidence], name: str, asked: Asked) -> None:
    if name not in found and len(found) < _MOST_KINDS:
        found[name] = proof(asked)


def _method_of(question: Any) -> str:
    return str(question.get("method")) if isinstance(question, dict) else "?"


def _is_cache_hint(result: Mapping[str, Any]) -> bool:
    ttl = result.get("ttlMs", ABSENT)
    return type(ttl) is int and ttl >= 0 and result.get("cacheScope") in ("public", "private")


def _metas(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The `_meta` of a result and of the items of its lists."""
    for holder in (result, *_items(result)):
        meta = holder.get("_meta")
        if isinstance(meta, dict):
            yield meta


def _items(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in result.values():
        if isinstance(value, list):
            yield from (one for one in value[:_MOST_ITEMS] if isinstance(one, dict))


def _blocks(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Content of tool results and of the messages of prompts."""
    for item in _items(result):
        content = item.get("content")
        yield content if isinstance(content, dict) else item
