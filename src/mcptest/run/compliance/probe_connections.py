"""The connections that probes talk over: shared where that does no harm, their own where not.

Starting a server is what takes the longest in most probes, so those that leave a connection as
they found it use one together. Those that say what no well-behaved client says have another.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Literal, TypeAlias

from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.site import Site

Purpose: TypeAlias = Literal["polite", "rude", "another"]
_Key: TypeAlias = tuple[Purpose, tuple[str, ...]]

_SHARED: weakref.WeakKeyDictionary[Site, dict[_Key, Conversation]] = weakref.WeakKeyDictionary()
"""Which connections probes share, for as long as somebody judges the site. The site ends them."""
_LAUNCHING = threading.Lock()


def shared(site: Site, purpose: Purpose, declare: tuple[str, ...] = ()) -> Conversation:
    """The connection for this purpose; a new one when there is none yet, or it was lost."""
    known = _SHARED.setdefault(site, {})
    found = known.get((purpose, declare))
    if found is None or not is_usable(found):
        found = known[purpose, declare] = launched(site, declare=declare)
    return site.ready(found)


def launched(site: Site, *, begin: bool = True, declare: tuple[str, ...] = ()) -> Conversation:
    """A connection that is set going. Slow probes are taken on the side, so one at a time."""
    with _LAUNCHING:
        return site.launch(begin=begin, declare=declare)


def set_going(site: Site, purposes: Sequence[Purpose]) -> None:
    """Launch shared connections before they are needed, so that the servers start meanwhile."""
    known = _SHARED.setdefault(site, {})
    for purpose in purposes:
        if (purpose, ()) not in known:
            known[purpose, ()] = launched(site)


def is_usable(conversation: Conversation) -> bool:
    return conversation.gone is None and not conversation.mute and conversation.tape.exited is None
