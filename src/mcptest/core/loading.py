"""Files of our own that are read when they are first needed, by whichever thread needs them."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TypeVar

_Loaded = TypeVar("_Loaded")
_LOADING = threading.RLock()


def loaded_once(load: Callable[[], _Loaded]) -> Callable[[], _Loaded]:
    """Like `functools.cache`, but no two threads load at a time, whatever it is that they load.

    msgspec learns a type when it is first used, and two threads that make it learn types at the
    same time crash the process (seen with msgspec 0.22.0).
    """
    loaded: list[_Loaded] = []

    @functools.wraps(load)
    def once() -> _Loaded:
        if not loaded:
            with _LOADING:
                if not loaded:
                    loaded.append(load())
        return loaded[0]

    return once
