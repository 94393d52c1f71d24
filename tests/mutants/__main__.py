"""`python -m tests.mutants RULE-ID [options of the demo]`: be the mutant that breaks this rule."""

from __future__ import annotations

import sys

from mcptest.servers.demo.__main__ import run
from mcptest.servers.demo.start_options import BadOption, parse_options
from tests.mutants.mutant import OFFERED, every_mutant
from tests.mutants.seams import remember_requests


def main(words: list[str]) -> int:
    table = every_mutant()
    if not words or words[0] not in table:
        sys.stderr.write(f"name one of {', '.join(sorted(table))}\n")
        return 2
    chosen = table[words[0]]
    try:
        options = parse_options([*OFFERED, *chosen.options, *words[1:]])
    except BadOption as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    remember_requests()
    chosen.fault()
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
