"""Whether a client and the server of a scenario have a revision in common, as the capture shows.

A client that speaks none of the revisions on offer leaves, which is what it should do. That is one
cause, and not a failure of whatever it did not get to.
"""

from __future__ import annotations

from mcptest.clients.seen import Said, Seen
from mcptest.model.message import Kind
from mcptest.model.revision import Era, Revision, revision_of_wire
from mcptest.model.show import show
from mcptest.peer.scripted.request_checks import VERSION


def speaks_only(seen: Seen) -> str:
    """Why nothing came of it, if the reason is the revision; empty if it is not."""
    eras = {revision.era for revision in seen.offered}
    first = seen.requests("initialize")
    on_their_own = [one for one in seen.requests() if _is_stateless(one)]
    if not eras or not seen.requests():
        return ""
    if Era.HANDSHAKE not in eras and first and not on_their_own:
        proposed = show(str(first[0].params.get("protocolVersion")), 40)
        return _told(seen, f"the client speaks only {proposed}: it begins with initialize")
    if Era.STATELESS not in eras and on_their_own and not first:
        spoken = show(str(on_their_own[0].meta.get(VERSION, Revision.V2026_07_28)), 40)
        return _told(seen, f"the client speaks only {spoken}: it does not fall back to initialize")
    return _left(seen, first[-1]) if first else ""


def was_denied(seen: Seen) -> bool:
    """The server speaks what the client proposed, and answered with something else on purpose."""
    proposed = (one.params.get("protocolVersion") for one in seen.requests("initialize"))
    return any(revision_of_wire(one) in seen.offered for one in proposed)


def _is_stateless(said: Said) -> bool:
    return said.method == "server/discover" or VERSION in said.meta


def _left(seen: Seen, first: Said) -> str:
    """It was answered with a revision that it did not propose, and said nothing after that."""
    proposed = first.params.get("protocolVersion")
    answer = next((one for one in seen.said if _answers(one, first)), None)
    result = answer.value.get("result") if answer is not None else None
    agreed = result.get("protocolVersion") if isinstance(result, dict) else None
    if answer is None or agreed == proposed or revision_of_wire(agreed) is None:
        return ""
    if any(one.sender == "client" and one.place > answer.place and one.method for one in seen.said):
        return ""
    why = f"it proposed that, was answered with {agreed}, and left"
    return _told(seen, f"the client speaks only {show(str(proposed), 40)}: {why}")


def _answers(said: Said, request: Said) -> bool:
    return (
        said.sender == "server"
        and said.message.kind is Kind.RESULT
        and said.place > request.place
        and said.value.get("id") == request.value.get("id")
    )


def _told(seen: Seen, why: str) -> str:
    offered = ", ".join(one.value for one in seen.offered)
    return f"{why}. The server speaks {offered} here"
