"""Every fact of every probe, with the function that works it out of what was seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcptest.run.compliance import (
    probe_facts_connection,
    probe_facts_features,
    probe_facts_http,
    probe_facts_lists,
    probe_facts_tasks,
)
from mcptest.run.compliance.probe_seen import Fact

FACTS: Final[Mapping[tuple[str, str], Fact]] = {
    **probe_facts_connection.FACTS,
    **probe_facts_lists.FACTS,
    **probe_facts_http.FACTS,
    **probe_facts_features.FACTS,
    **probe_facts_tasks.FACTS,
}
