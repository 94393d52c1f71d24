"""Every rule there is. Importing this module fills the registry, in the order of the pages."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Final

from mcptest.core.errors import UsageError, close_matches
from mcptest.core.safe_text import show
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
    """The rule over sessions with this id, in any case."""
    wanted = name.strip().upper()
    found = RULES.get(wanted) or COMPOSITION_RULES.get(wanted)
    if found is None:
        raise unknown_rule(name, [*RULES, *COMPOSITION_RULES])
    return found


def unknown_rule(name: str, known: Sequence[str]) -> UsageError:
    """The error for a typo, which names the nearest rule."""
    wanted = name.strip().upper()
    # A digit that was left out is the likeliest mistake.
    family, _, number = wanted.partition("-")
    full = f"{family}-{number:0>3}"
    near = full if full in known else "".join(close_matches(wanted[:40], known, n=1, cutoff=0.4))
    hint = f"did you mean {near}? " if near else ""
    hint += "`mcptest compliance rules` lists all rules"
    return UsageError(f"unknown rule {show(name, 60)}", hint=hint)
