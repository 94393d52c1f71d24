"""Everything that may break a server on its way from revision to revision: one table.

An item says what changed and what to do about it; the probe of the same name in `run` looks at a
live server. What a server can't notice, because only clients have to change, is not in here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcptest.model.revision import Revision
from mcptest.rules.migration_item import MigrationItem
from mcptest.rules.migration_items_handshake import HANDSHAKE_ITEMS
from mcptest.rules.migration_items_stateless import STATELESS_ITEMS

ITEMS: Final[tuple[MigrationItem, ...]] = (*STATELESS_ITEMS, *HANDSHAKE_ITEMS)


def items_between(older: Revision, newer: Revision) -> Iterator[MigrationItem]:
    """What changes on the way, in the order of the table: the newest step first."""
    return (item for item in ITEMS if item.is_on_the_way(older, newer))
