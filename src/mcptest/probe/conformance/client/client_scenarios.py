"""The scenarios for clients that are not about authorization."""

from __future__ import annotations

from pathlib import Path

from mcptest.probe.conformance.client import (
    basics,
    client_headers,
    client_input,
    resilience,
    tool_schemas,
)
from mcptest.probe.conformance.scenario_file import read_scenarios

_SUBJECTS = (basics, client_headers, client_input, resilience, tool_schemas)
SCENARIOS = read_scenarios(
    Path(__file__).with_suffix(".yml"),
    [one.JUDGES for one in _SUBJECTS],
    [one.SCRIPTS for one in _SUBJECTS],
)
