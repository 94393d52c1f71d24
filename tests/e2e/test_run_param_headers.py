"""A tool whose argument travels as a header too is called well by a suite that lists nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.e2e.driving import free_port, listening, mcptest


def test_a_call_that_misses_a_header_is_made_again_with_it(tmp_path: Path) -> None:
    port = free_port()
    suite = tmp_path / "weather.yaml"
    suite.write_text(
        "name: weather\n"
        f"server: {{transport: http, url: 'http://127.0.0.1:{port}/mcp'}}\n"
        "assert: {tool: weather, args: {city: Oslo}, expect: {not_error: true}}\n"
    )
    demo = (sys.executable, "-m", "mcptest", "serve", "demo", "--transport", "http")
    with listening((*demo, "--port", str(port)), "listening"):
        done = mcptest("run", str(suite))
        unknown = suite.with_name("unknown.yaml")
        unknown.write_text(suite.read_text().replace("weather,", "no_such_tool,"))
        refused = mcptest("run", str(unknown))
    assert done.code == 0, done.said
    assert refused.code == 1
