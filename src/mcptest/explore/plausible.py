"""The plainest input that a tool's schema accepts, made without chance.

Where nothing constrains a member it is its own name, 0, false or an empty array.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcptest.explore.from_schema import fitting_value


def plausible_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Values for what the schema requires; none when nothing that fits was found."""
    value = fitting_value(schema)
    return value if isinstance(value, dict) else {}
