"""`requestState`: what an unfinished call needs to go on, signed, so that nothing is remembered.

It holds its end and the answers that were given so far; the signature binds both to the method and
its params.
"""

from __future__ import annotations

import json
import time

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from typing import Any

    from mcptest.peer.demo.protocol import Obj

STATE_SECONDS = 600
_MAX_STATE = 1_000_000


def new_state(method: str, params: Obj, answers: Obj, secret: bytes) -> str:
    """A state for this request that lasts for a while."""
    payload = json.dumps([int(time.time()) + STATE_SECONDS, answers]).encode().hex()
    return f"{payload}.{_signature(payload, method, params, secret)}"


def read_state(state: Any, method: str, params: Obj, secret: bytes) -> Obj | None:
    """The answers in a state that we gave for this very request; None for any other."""
    import hmac

    if not isinstance(state, str) or len(state) > _MAX_STATE:
        return None
    payload, _, signature = state.partition(".")
    try:
        expected = _signature(payload, method, params, secret)
    except RecursionError:
        return None  # read, but too deep to be written: we never signed it
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        return None
    ends, answers = json.loads(bytes.fromhex(payload))
    return dict(answers) if time.time() < ends else None


def _signature(payload: str, method: str, params: Obj, secret: bytes) -> str:
    import hmac

    fixed = {
        name: value
        for name, value in params.items()
        if name not in {"_meta", "inputResponses", "requestState"}
    }
    signed = json.dumps([payload, method, fixed], sort_keys=True)
    return hmac.digest(secret, signed.encode(), "sha256").hex()
