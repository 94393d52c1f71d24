"""The connections that questions are asked over: shared where that does no harm.

Starting a server is what takes the longest in a run, so questions that any client may ask use one
connection together. What no well-behaved client says is said elsewhere, and the next such question
goes over the same connection only if that still answers as it did before anything was said. What a
server of both eras may read as a word of the other era is the last thing that its connection sees.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Literal, TypeAlias

from mcptest.run.compliance.conversation import Conversation
from mcptest.run.compliance.site import Site

Purpose: TypeAlias = Literal["polite", "rude", "another", "last"]
_Key: TypeAlias = tuple[Purpose, tuple[str, ...]]

_SHARED: weakref.WeakKeyDictionary[Site, dict[_Key, Conversation]] = weakref.WeakKeyDictionary()
"""Which connections probes share, for as long as somebody judges the site. The site ends them."""
_LAUNCHING = threading.Lock()


def shared(site: Site, purpose: Purpose, declare: tuple[str, ...] = ()) -> Conversation:
    """The connection for this purpose; a new one when there is none yet, or none that will do.

    `last` is for a question after which nothing is asked there any more.
    """
    known = _SHARED.setdefault(site, {})
    if purpose == "last":
        return _unspoiled(site, known)
    found = known.get((purpose, declare))
    if found is not None and is_usable(found) and _will_do(site.ready(found), purpose):
        return found
    found = known[purpose, declare] = launched(site, declare=declare)
    _will_do(site.ready(found), purpose)
    return found


def _will_do(conversation: Conversation, purpose: Purpose) -> bool:
    """Whether nothing is left of the rude words that were said on it, if any were."""
    if purpose != "rude":
        return True
    conversation.polite = False
    return conversation.answers_as_before()


def _unspoiled(site: Site, known: dict[_Key, Conversation]) -> Conversation:
    """A connection that is of no more use to others, and was left as it was found."""
    for purpose in ("rude", "another"):
        found = known.pop((purpose, ()), None)
        if found is not None and is_usable(found) and site.ready(found).answers_as_before():
            break
    else:
        found = site.ready(launched(site))
    found.polite = False
    return found


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
