"""What a server offers, as far as it decides what may be asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Offer(msgspec.Struct, frozen=True):
    """The lists of one server. Whoever makes it leaves out the tools that must not be called."""

    tools: tuple[Any, ...] = ()
    prompts: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    templates: tuple[Any, ...] = ()
    capabilities: Mapping[str, Any] = {}

    def declares(self, capability: str) -> bool:
        """Whether the capability is there: `tools`, `resources.subscribe`."""
        found: Any = self.capabilities
        for part in capability.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        return found is not None and found is not False

    def names(self, part: str, member: str = "name") -> tuple[str, ...]:
        """The usable names in one of the lists."""
        found = (one.get(member) for one in getattr(self, part) if isinstance(one, Mapping))
        return tuple(name for name in found if isinstance(name, str))
