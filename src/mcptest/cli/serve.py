"""`mcptest serve`: be a server: the demo, or the one of a scenario for testing a client."""

from __future__ import annotations

import argparse
from pathlib import Path

from mcptest.model.errors import UsageError
from mcptest.peer.demo.options import TABLE, BadOption, Options, check_options, set_option

_OF_A_SCENARIO = frozenset({"transport", "port", "port-file", "spec-version"})


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=["demo"], help="the server to be")
    parser.add_argument(
        "--scenario", metavar="NAME", help="be the scripted server of this scenario for clients"
    )
    parser.add_argument(
        "--capture", metavar="FILE", help="with --scenario: keep what went over the wire"
    )
    for name, (_, metavar, words) in TABLE.items():
        parser.add_argument(f"--{name}", metavar=metavar, help=words)
    parser.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    if arguments.scenario is not None:
        return _serve_scenario(arguments)
    if arguments.what is None:
        raise UsageError("nothing to serve was named", hint="name demo, or a --scenario")
    if arguments.capture is not None:
        raise UsageError("--capture goes with --scenario", hint="see mcptest serve --help")
    from mcptest.peer.demo.__main__ import run as run_demo

    return run_demo(_options(arguments))


def _serve_scenario(arguments: argparse.Namespace) -> int:
    from mcptest.clients.catalogue import scenario_named
    from mcptest.model.revision import parse_revision
    from mcptest.run.conformance.scenario_serving import (
        revision_for,
        serve_on_pipes,
        serve_on_site,
    )

    _refuse_options_of_the_demo(arguments)
    scenario = scenario_named(arguments.scenario)
    wanted = arguments.spec_version
    revision = revision_for(scenario, None if wanted is None else parse_revision(wanted))
    capture = None if arguments.capture is None else Path(arguments.capture)
    options = _options(arguments)
    if options.transport == "stdio":
        return serve_on_pipes(scenario, revision, capture)
    return serve_on_site(scenario, revision, capture, options.port, options.port_file)


def _refuse_options_of_the_demo(arguments: argparse.Namespace) -> None:
    if arguments.what is not None:
        raise UsageError("--scenario names a server of its own, not the demo")
    for name in TABLE:
        given = getattr(arguments, name.replace("-", "_")) is not None
        if given and name not in _OF_A_SCENARIO:
            raise UsageError(f"--{name} is for the demo, not for a scenario")


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
