"""`mcptest serve`: be a server: the demo, a mock, a recording, or the one of a scenario."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.commands.options import CAPABILITIES, wanted_revision
from mcptest.core.errors import ExitCode, UsageError
from mcptest.servers.demo.start_options import TABLE, BadOption, Options, check_options, set_option

_OF_A_SCENARIO = frozenset({"transport", "port", "port-file", "spec-version"})
_OF_THE_DEMO = frozenset({"root", "offer", "hide"})


_GROUPS = {
    "the server": ("transport", "spec-version"),
    "over HTTP": ("host", "port", "port-file", "response", "token"),
    "what it offers": ("root", "era", "page-size", "offer", "hide"),
}
"""Where the help shows the options that the demo has as a program of its own."""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", nargs="?", choices=["demo"], help="the server to be")
    add("--mock", metavar="FILE", help="be the server that this YAML describes")
    add("--scenario", metavar="NAME", help="be the scripted server of this scenario for clients")
    add(
        "--capture",
        metavar="FILE",
        help="be the server that was recorded; with --scenario: record into FILE",
    )
    add(
        "--capabilities",
        choices=CAPABILITIES,
        help="with --scenario: whether to ask for what the client declares (probe, the default)",
    )
    for title, names in _GROUPS.items():
        add = parser.add_argument_group(title).add_argument
        for name in names:
            _, metavar, words = TABLE[name]
            add(f"--{name}", metavar=metavar, help=words)
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.scenario is not None:
        if arguments.mock is not None:
            raise UsageError("--scenario names a server of its own, not a mock")
        return _serve_scenario(arguments)
    if arguments.capabilities is not None:
        raise UsageError("--capabilities goes with --scenario")
    named = [one for one in (arguments.what, arguments.mock, arguments.capture) if one is not None]
    if not named:
        raise UsageError(
            "nothing to serve was named", hint="name demo, a --mock, a --capture or a --scenario"
        )
    if arguments.what is not None and arguments.capture is not None:
        raise UsageError("--capture goes with --scenario, or names the one server to be")
    if len(named) > 1:
        raise UsageError("only one server can be served: demo, a --mock or a --capture")
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

    _refuse_options(arguments, frozenset(TABLE) - {"transport"}, "a recording")
    if _options(arguments).transport != "stdio":
        raise UsageError("a recording is served over stdio", hint="leave --transport out")
    serve_recording(arguments.capture)
    return ExitCode.OK


def _serve_scenario(arguments: argparse.Namespace) -> int:
    from mcptest.core.verdict import Side
    from mcptest.probe.conformance.client.scenario_server import serve_scenario
    from mcptest.probe.conformance.scenario_catalogue import scenario_named

    if arguments.what is not None:
        raise UsageError("--scenario names a server of its own, not the demo")
    _refuse_options(arguments, frozenset(TABLE) - _OF_A_SCENARIO, "a scenario")
    scenario = scenario_named(Side.CLIENT, arguments.scenario)
    wanted = wanted_revision(arguments.spec_version or "auto")
    capture = None if arguments.capture is None else Path(arguments.capture)
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
            raise UsageError(f"--{name} is for the demo, not for {what}")


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
