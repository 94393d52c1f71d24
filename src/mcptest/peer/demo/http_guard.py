"""Who may talk to the HTTP server, and in which form: Host, Origin, Accept, Content-Type."""

from __future__ import annotations

from mcptest.peer.demo.protocol import INVALID_REQUEST, Refusal

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.http_requests import Request

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
WILDCARDS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104  compared with, never bound to


class Rejected(Exception):  # noqa: N818  an answer, not a defect
    """The request is answered with this status, before anyone looks at its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.refusal = Refusal(INVALID_REQUEST, message)


def check_sender(request: Request, bound_to: str) -> None:
    """Refuse what a web page of another site could send, by its own name or by DNS rebinding."""
    host = request.header("host")
    if host is not None and not _is_our_name(_host_of(host), bound_to):
        raise Rejected(403, "Forbidden: unknown Host")
    origin = request.header("origin")
    if origin is not None and not _is_our_origin(origin, bound_to):
        raise Rejected(403, "Forbidden: unknown Origin")


def check_json(request: Request) -> None:
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Rejected(415, "Content-Type must be application/json")


def check_accept(request: Request, *kinds: str) -> None:
    """Refuse a client that does not take what it may get."""
    accepted = _accepted(request)
    for kind in kinds:
        family = kind.partition("/")[0]
        if not accepted & {kind, f"{family}/*", "*/*"}:
            raise Rejected(406, f"Accept must list {' and '.join(kinds)}")


def _accepted(request: Request) -> set[str]:
    header = request.header("accept") or ""
    return {part.partition(";")[0].strip().lower() for part in header.split(",")}


def _is_our_origin(origin: str, bound_to: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    return (
        bool(separator)
        and scheme in {"http", "https"}
        and not set(authority) & set("/@?# ,")
        and _is_our_name(_host_of(authority), bound_to)
    )


def _host_of(authority: str) -> str:
    if authority.startswith("["):
        return authority[1:].partition("]")[0].lower()
    return authority.partition(":")[0].lower()


def _is_our_name(host: str, bound_to: str) -> bool:
    if host in LOOPBACK_NAMES or host == bound_to.lower():
        return True
    # Rebinding needs a name: on a wildcard address any bare address is fine.
    return bound_to in WILDCARDS and _is_an_address(host)


def _is_an_address(host: str) -> bool:
    import socket

    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False
