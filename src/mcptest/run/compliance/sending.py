"""How a check becomes a message: params, `_meta` and headers as this era sends them, but for what
the check wants otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mcptest.model.revision import Era, Revision
from mcptest.peer.lifecycle import Lifecycle
from mcptest.peer.stateless import PREFIX
from mcptest.run.compliance.declared import capabilities_of
from mcptest.suite.check_forms import Check
from mcptest.wire.param_headers import PARAM_PREFIX

_CAPABILITIES = PREFIX + "clientCapabilities"
_VERSION = PREFIX + "protocolVersion"
_OWN_META = frozenset({_VERSION, _CAPABILITIES})
"""What every request says alike."""
NOT_SENT = ""
"""The value that makes a transport leave a header out."""


class Outgoing(msgspec.Struct, frozen=True):
    """A request or notification that is ready to be sent."""

    method: str
    params: Mapping[str, Any] | None
    headers: Mapping[str, str]


def outgoing(
    check: Check,
    lifecycle: Lifecycle,
    revision: Revision,
    input_schema: Mapping[str, Any] | None = None,
) -> Outgoing:
    """The message of a check that has a method; its placeholders are filled in already."""
    params = _params(check, lifecycle, revision)
    usual: Mapping[str, str] = {}
    # Whoever sends initialize is a client of the handshake era, which has no headers before it.
    if check.method != "initialize":
        usual = lifecycle.headers(check.method, params, input_schema)
    return Outgoing(check.method, params, {**usual, **changed_headers(check.headers)})


def is_odd(check: Check) -> bool:
    """Whether no well-behaved client of the revision that is judged would send this."""
    if {"_meta", "params"} & {*check.omit}:
        return True
    # How an argument is written in its header is the client's choice.
    if any(
        value is None or not name.startswith(PARAM_PREFIX) for name, value in check.headers.items()
    ):
        return True
    return any(value is None or name in _OWN_META for name, value in check.meta.items())


def may_change_era(check: Check, revision: Revision) -> bool:
    """Whether a server that speaks both eras may take the connection for one of the other.

    Whoever does not say which revision a request is of speaks like a client of the handshake.
    """
    if revision.era is Era.HANDSHAKE:
        return False
    if check.method == "initialize" or {"_meta", "params"} & {*check.omit}:
        return bool(check.method)
    return _VERSION in check.meta and check.meta[_VERSION] is None


def changed_headers(headers: Mapping[str, Any]) -> dict[str, str]:
    """Headers as a transport takes them; null leaves one out."""
    return {name: NOT_SENT if value is None else str(value) for name, value in headers.items()}


def _params(check: Check, lifecycle: Lifecycle, revision: Revision) -> dict[str, Any] | None:
    if "params" in check.omit:
        return None
    prepared = lifecycle.prepare(check.params)
    params = dict(prepared) if prepared is not None else None
    if params is not None and "arguments" in check.omit:
        params.pop("arguments", None)
    if "_meta" in check.omit:
        if params is not None:
            params.pop("_meta", None)
        return params
    changes = dict(check.meta)
    if check.declare and revision.era is Era.STATELESS and _CAPABILITIES not in changes:
        changes[_CAPABILITIES] = capabilities_of(check.declare, revision)
    return _with_meta(params, changes) if changes else params


def _with_meta(params: dict[str, Any] | None, changes: Mapping[str, Any]) -> dict[str, Any]:
    params = params or {}
    own = params.get("_meta")
    meta = {**(own if isinstance(own, Mapping) else {}), **changes}
    return {**params, "_meta": {name: value for name, value in meta.items() if value is not None}}
