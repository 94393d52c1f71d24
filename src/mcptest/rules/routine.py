"""Steps that are as they should be: most rules need not look at each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcptest.model.message import Kind

if TYPE_CHECKING:
    from mcptest.rules.session import Step

_EMPTY: dict[str, Any] = {}


def is_routine(step: Step) -> bool:
    """A request or result that is well formed, has a new id, or answers what was asked and waits.

    Nearly all steps are, so the rules about messages as such need not look at each of them.
    """
    message = step.message
    value = message.value
    if message.problems or step.in_batch or value.__class__ is not dict:
        return False
    if value.get("jsonrpc") != "2.0":
        return False
    if step.kind is Kind.RESULT:
        request = step.request
        if request is None or request.cancelled is not None or step.result.__class__ is not dict:
            return False
        if "error" in value:
            return False
        posted = step.stream.posted if step.stream is not None else None
        return posted is None or posted.kind is not Kind.NOTIFICATION
    return (
        step.kind is Kind.REQUEST
        and not step.id_was_used
        and (step.id.__class__ is int or step.id.__class__ is str)
        and value["method"].__class__ is str
        and value.get("params", _EMPTY).__class__ is dict
        and not step.method.startswith("notifications/")
    )
