"""The scenarios for servers."""

from __future__ import annotations

from pathlib import Path

from mcptest.probe.conformance.scenario_file import read_scenarios
from mcptest.probe.conformance.server import (
    contents,
    handshake_sessions,
    required_input,
    server_http,
    stateless_requests,
)

_SUBJECTS = (contents, handshake_sessions, required_input, server_http, stateless_requests)
SCENARIOS = read_scenarios(
    Path(__file__).with_suffix(".yml"),
    [one.JUDGES for one in _SUBJECTS],
    [one.SCRIPTS for one in _SUBJECTS],
)
