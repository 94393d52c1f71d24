"""Every rule there is. Importing this module fills the registry, in the order of the pages."""

from __future__ import annotations

import importlib
from typing import Final

from mcptest.core.errors import UsageError
from mcptest.core.spelling import close_matches
from mcptest.rules.composition import COMPOSITION_RULES, CompositionRule
from mcptest.rules.declaration import RULES, Rule

MODULES: Final = (
    *("invariants", "messages", "lifecycle", "utilities"),
    *("primitives", "stateless", "shapes", "transports"),
)
for _module in MODULES:
    importlib.import_module(f"mcptest.rules.{_module}")


def all_rules() -> list[Rule]:
    """Family by family in the order of the modules, each family by its numbers."""
    families = list(dict.fromkeys(name.partition("-")[0] for name in RULES))
    return sorted(RULES.values(), key=lambda rule: (families.index(rule.id.split("-")[0]), rule.id))


def find_rule(name: str) -> Rule | CompositionRule:
    """The rule with this id, in any case; the error for a typo names the nearest one."""
    wanted = name.strip().upper()
    found = RULES.get(wanted) or COMPOSITION_RULES.get(wanted)
    if found is not None:
        return found
    near = close_matches(wanted, [*RULES, *COMPOSITION_RULES], n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise UsageError(f"unknown rule: {name}", hint=f"{hint}mcptest compliance rules lists them all")
