"""`python -m tests.properties.faulty NAME [options of the demo]`: be the demo with this bug."""

from __future__ import annotations

import sys

from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import parse_options
from tests.mutants.seams import remember_requests
from tests.properties.every_fault import BUGS


def main(words: list[str]) -> int:
    if not words or words[0] not in BUGS:
        sys.stderr.write(f"name one of {', '.join(BUGS)}\n")
        return 2
    options = parse_options(words[1:])
    remember_requests()
    BUGS[words[0]].fault()
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
