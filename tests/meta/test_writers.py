"""Only a few modules write, and each of them masks what it writes, or has a reason not to.

Whatever else wants to write a file calls one of them. Text for people goes to `sys.stdout` and
`sys.stderr`, which `commands/output.py` replaces.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.meta.source_tree import Module, modules

MASKING = {
    "mcptest.report.write": "appends to the summary of a CI step",
    "mcptest.probe.suites.settings": "appends which tests failed",
    "mcptest.transport.files": "every report, baseline, example, golden answer and suite",
    "mcptest.transport.recorder": "captures",
}
"""They call `redaction`, directly or through the masker that they were given."""
UNMASKED = {
    "mcptest.__main__": "the version, before anything is imported",
    "mcptest.commands.mcp.tool_commands": "the configuration of a command, gone when that ends",
    "mcptest.commands.mcp.roots": "a copy of the user's own files, gone when the command ends",
    "mcptest.commands.early_signals": "says that we were interrupted",
    "mcptest.commands.app": "opens /dev/null",
    "mcptest.commands.live_display": "erases a line",
    "mcptest.commands.output": "our standard streams, below the ones that mask",
    "mcptest.servers.demo.world": "the files of the demo, which its client writes",
    "mcptest.servers.demo.http_server": "a port",
    "mcptest.servers.demo.stdio_server": "speaks the protocol",
    "mcptest.commands.conformance.run": "copies a capture, which is masked",
    "mcptest.probe.conformance.client.scenario_server": "an empty file that takes a name",
    "mcptest.commands.fleet.worker_pool": "speaks to a process of ours",
    "mcptest.commands.fleet.worker": "speaks to the process that started it, which masks it",
    "mcptest.transport.temporary": "a copy of the user's own folder, gone after the run",
    "mcptest.commands.watch.run": "wakes itself up",
    "mcptest.transport.lifeline": "tells a process of ours which servers are running",
    "mcptest.transport.proxy.http_proxy": "wakes itself up",
    "mcptest.transport.proxy.pipes": "passes bytes on as they are, and opens /dev/null",
    "mcptest.transport.stdio": "speaks the protocol",
}
_WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"}
_WRITING_CALLS = {"write_text", "write_bytes", "copyfile", "copy2", "copytree"}


def writes(module: Module) -> Iterator[int]:
    """The lines in which something is opened for writing, or written past `sys.stdout`."""
    for node in module.nodes:
        if isinstance(node, ast.Attribute) and node.attr in _WRITING_FLAGS:
            yield node.lineno
        if isinstance(node, ast.Call) and _is_writing(node):
            yield node.lineno


def _is_writing(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    function = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in _WRITING_CALLS or function == "print":
        return True
    if name == "write":
        return ast.unparse(call.func) in ("os.write", "sys.__stdout__.write")
    if name in ("open", "fdopen") or function == "open":
        modes = [one.value for one in (*call.args, *(k.value for k in call.keywords)) if _text(one)]
        return any(set(mode) <= set("rwaxbt+") and set(mode) & set("wax+") for mode in modes)
    return False


def _text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(node.value)


def test_nothing_writes_a_file_or_prints_but_what_is_named_here() -> None:
    found = {module.name for module in modules() if any(writes(module))}
    ours = {
        name for name in found if not name.startswith("mcptest.probe.conformance.client.drivers")
    }
    assert sorted(ours - {*MASKING, *UNMASKED}) == []
    assert sorted({*MASKING, *UNMASKED} - ours) == [], "named, and writes nothing any more"


def test_whoever_writes_what_others_said_masks_it() -> None:
    asking = {module.name for module in modules() if "redaction." in ast.unparse(module.tree)}
    assert sorted(set(MASKING) - asking) == []
