"""The misbehaving HTTP servers of `tests/rogues` as a process: `http_peer.py KIND NAME [METHOD]`.

The first line on stdout is the URL; the end of stdin ends it.
"""

from __future__ import annotations

import os
import sys

from tests.rogues.http_script import serving
from tests.rogues.malformed import malformed_http
from tests.rogues.test_http_gallery import GALLERY, after_request, stops_inside_the_body

SCRIPTS = {name: rogue.script for name, rogue in GALLERY.items()}
SCRIPTS["slow body"] = after_request(stops_inside_the_body)


def main(kind: str, *words: str) -> None:
    def wait(url: str) -> None:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        sys.stdin.buffer.read()
        os._exit(0)

    if kind == "malformed":
        with malformed_http(*words) as url:
            wait(url)
    else:
        with serving(SCRIPTS[words[0]]) as server:
            wait(server.url)


if __name__ == "__main__":
    main(*sys.argv[1:])
