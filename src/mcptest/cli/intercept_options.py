"""Where a proxy listens: the options of `intercept` and of `record --proxy`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcptest.run.proxying import Passage


def add_listening_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("between clients and a server with a URL")
    group.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where on this machine; port 0 is any that is free (127.0.0.1:0)",
    )
    group.add_argument("--port-file", type=Path, metavar="FILE", help="write the port there")


def passage_of(arguments: argparse.Namespace, patience: float | None = None) -> Passage:
    from mcptest.run.proxying import Passage
    from mcptest.transport.proxy_guard import listening_address

    listen = listening_address(arguments.listen) if arguments.listen is not None else None
    return Passage(listen, arguments.port_file, patience)
