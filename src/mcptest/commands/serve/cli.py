"""`mcptest serve`: serve the demo, a mock, a replay of a capture, or a client scenario."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcptest.commands.options import CAPABILITIES, HIDDEN, OptionGroup, wanted_revision
from mcptest.core.errors import ExitCode, UsageError
from mcptest.servers.demo.start_options import TABLE, BadOption, Options, check_options, set_option

_OF_A_SCENARIO = frozenset({"transport", "port", "port-file", "spec-version"})
_NAME_ONE = "name one: demo, --mock, --capture or --scenario"
_OF_THE_DEMO = frozenset({"root", "offer", "hide"})


_GROUPS = {
    "protocol": ("transport", "spec-version"),
    "HTTP": ("host", "port", "port-file", "response", "token"),
    "content": ("root", "era", "page-size", "offer", "hide"),
}
"""Where the help shows the options that the demo has as a program of its own."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add("what", "serve the demo", nargs="?", choices=["demo"])
    add("--mock FILE", "serve the mock described in this YAML file", type=str)
    add("--capture FILE", "replay the server recorded in this capture", type=str)
    add("--scenario NAME", "serve this client scenario")
    add("--save-capture FILE", "with --scenario: write what went over the wire")
    about = "with --scenario: how to treat optional client capabilities (default: probe)"
    add("--capabilities", about, choices=CAPABILITIES)
    for title, names in _GROUPS.items():
        add = OptionGroup(parser, title)
        for name in names:
            _, metavar, about = TABLE[name]
            add(f"--{name} {metavar}", about, type=str)
    OptionGroup(parser)("--debug", HIDDEN)


def run(arguments: argparse.Namespace) -> int:
    if arguments.scenario is not None:
        return _serve_scenario(arguments)
    for option in ("capabilities", "save_capture"):
        if getattr(arguments, option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} requires --scenario")
    named = [one for one in (arguments.what, arguments.mock, arguments.capture) if one is not None]
    if len(named) != 1:
        said = "more than one server is named" if named else "no server is named"
        raise UsageError(said, hint=_NAME_ONE)
    if arguments.mock is not None:
        return _serve_mock(arguments)
    if arguments.capture is not None:
        return _serve_recording(arguments)
    from mcptest.servers.demo.__main__ import run as run_demo

    return run_demo(_options(arguments))


def _serve_mock(arguments: argparse.Namespace) -> int:
    from mcptest.servers.demo.__main__ import run as serve
    from mcptest.servers.mock import hide_what_is_not_there, mock_content
    from mcptest.suite.mock_server import load_mock

    _refuse_options(arguments, _OF_THE_DEMO, "a mock")
    options = _options(arguments)
    mock = load_mock(arguments.mock)
    hide_what_is_not_there(options, mock)
    return serve(options, mock_content(mock))


def _serve_recording(arguments: argparse.Namespace) -> int:
    from mcptest.servers.replay import serve_recording

    _refuse_options(arguments, frozenset(TABLE) - {"transport"}, "a capture")
    if _options(arguments).transport != "stdio":
        raise UsageError("a capture is replayed over stdio only", hint="remove --transport")
    serve_recording(arguments.capture)
    return ExitCode.OK


def _serve_scenario(arguments: argparse.Namespace) -> int:
    from mcptest.core.verdict import Side
    from mcptest.probe.conformance.client.scenario_server import serve_scenario
    from mcptest.probe.conformance.scenario_catalogue import scenario_named

    if arguments.capture is not None:
        sys.stderr.write("mcptest: --capture with --scenario is now --save-capture\n")
        arguments.save_capture = arguments.capture
    if arguments.what is not None or arguments.mock is not None:
        raise UsageError("more than one server is named", hint=_NAME_ONE)
    _refuse_options(arguments, frozenset(TABLE) - _OF_A_SCENARIO, "a scenario")
    scenario = scenario_named(Side.CLIENT, arguments.scenario)
    wanted = wanted_revision(arguments.spec_version or "auto")
    capture = None if arguments.save_capture is None else Path(arguments.save_capture)
    options = _options(arguments)
    return serve_scenario(
        scenario,
        wanted,
        capture,
        transport="stdio" if options.transport == "stdio" else "http",
        mode=arguments.capabilities or "probe",
        port=options.port,
        port_file=options.port_file,
    )


def _refuse_options(arguments: argparse.Namespace, names: frozenset[str], what: str) -> None:
    for name in TABLE:
        if name in names and getattr(arguments, name.replace("-", "_")) is not None:
            raise UsageError(f"--{name} applies to the demo, not to {what}")


def _options(arguments: argparse.Namespace) -> Options:
    options = Options()
    try:
        for name in TABLE:
            value = getattr(arguments, name.replace("-", "_"))
            if value is not None:
                set_option(options, name, value)
        return check_options(options)
    except BadOption as problem:
        raise UsageError(str(problem), hint="see mcptest serve --help") from None
