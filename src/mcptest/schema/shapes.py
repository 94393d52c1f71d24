"""Does a message have the shape that its revision gives it? Answers with JSON pointers.

Looked at are the params of requests and notifications, the results and the errors; the envelope
around them is for `wire.envelope`. A method that the revision does not give to the sender has no
shape, and nothing is said about it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcptest.model.message import Kind
from mcptest.model.revision import Revision
from mcptest.schema.shape_checks import MOST_PROBLEMS, Fit, fit_of
from mcptest.schema.shape_vocabulary import Obj
from mcptest.schema.shapes_messages import ANY_ERROR, ERRORS, EXCHANGES, NOTICES, Exchange, Notice


@dataclass(frozen=True, slots=True)
class ShapeProblem:
    """One place where a message is not what its revision says."""

    pointer: str
    """A JSON pointer into the message; of what is missing, where it should have been."""
    expected: str
    actual: str


def shape_problems(
    message: Any,
    kind: Kind,
    sender: str,
    revision: Revision,
    request_method: str | None = None,
) -> list[ShapeProblem]:
    """Everything wrong with the shape of one message, at most twenty places of it.

    `request_method` is the method of the request that a result answers.
    """
    return problems_if_known(message, kind, sender, revision, request_method) or []


def problems_if_known(
    message: Any,
    kind: Kind,
    sender: str,
    revision: Revision,
    request_method: str | None = None,
) -> list[ShapeProblem] | None:
    """Like `shape_problems`, but None for a message that has no shape to be held to."""
    if type(message) is not dict:
        return None
    fit = _fit_for(message, kind, sender, revision, request_method)
    if fit is None:
        return None
    found = fit(message)
    if found is None:
        return []
    return [ShapeProblem(one.pointer, one.expected, one.actual) for one in found[:MOST_PROBLEMS]]


def _fit_for(
    message: dict[str, Any], kind: Kind, sender: str, revision: Revision, asked: str | None
) -> Fit | None:
    fits = _fits(kind, sender, revision)
    if kind is Kind.ERROR:
        error = message.get("error")
        code = error.get("code") if type(error) is dict else None
        return fits.get(code if type(code) is int else None, fits[None])
    method = asked if kind is Kind.RESULT else message.get("method")
    return fits.get(method) if type(method) is str else None


_KNOWN: dict[tuple[int, str, int], dict[Any, Fit]] = {}


def _fits(kind: Kind, sender: str, revision: Revision) -> dict[Any, Fit]:
    """What this side may send in this revision, by method or error code; made once."""
    # Members of an enumeration are hashed in Python; their identity is as good and faster.
    key = (id(kind), sender, id(revision))
    known = _KNOWN.get(key)
    if known is None:
        shapes = _shapes(kind, sender, revision)
        known = {name: fit_of(shape, revision) for name, shape in shapes.items()}
        _KNOWN[key] = known
    return known


def _shapes(kind: Kind, sender: str, revision: Revision) -> dict[Any, Obj]:
    if kind is Kind.ERROR:
        return {None: ANY_ERROR, **ERRORS}
    if kind is Kind.NOTIFICATION:
        return {row.method: row.message for row in NOTICES if _sends(row, sender, revision)}
    if kind is Kind.REQUEST:
        return {row.method: row.request for row in EXCHANGES if _sends(row, sender, revision)}
    if kind is Kind.RESULT:
        asker = "server" if sender == "client" else "client"
        return {row.method: row.answer for row in EXCHANGES if _sends(row, asker, revision)}
    return {}


def _sends(row: Exchange | Notice, sender: str, revision: Revision) -> bool:
    window = row.by_client if sender == "client" else row.by_server
    return window is not None and revision in window
