"""Count how many published servers break each rule, and write it into known_sdks.yml.

`python -m tests.published.commonness`, after `make published` has judged them. A server counts
once, whatever it is spoken to over; a rule counts where it passed or failed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mcptest.rules import known_sdks
from tests.published.readings import Verdicts, load_verdicts

FILE = Path(known_sdks.__file__).with_suffix(".yml")
LEAST = 10
"""On fewer servers a count says nothing."""


def counts(verdicts: Verdicts) -> dict[str, tuple[int, int]]:
    """By rule: on how many servers it fails, and on how many it was observed."""
    broken: dict[str, set[str]] = {}
    observed: dict[str, set[str]] = {}
    for name, judged in verdicts.configurations.items():
        server = name.rpartition(" ")[0]
        for found in judged.values():
            failing, passing = found["failing"], found["pass"]
            assert isinstance(failing, dict)
            assert isinstance(passing, list)
            for rule in [*failing, *passing]:
                observed.setdefault(rule, set()).add(server)
            for rule in failing:
                broken.setdefault(rule, set()).add(server)
    return {
        rule: (len(broken[rule]), len(observed[rule]))
        for rule in sorted(broken)
        if len(observed[rule]) >= LEAST
    }


def main() -> int:
    verdicts = load_verdicts()
    kept = re.split(r"^when: ", FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[0]
    lines = [f"when: {verdicts.date[:7]}", "common:"]
    lines += [f"  {rule}: [{n}, {of}]" for rule, (n, of) in counts(verdicts).items()]
    FILE.write_text(kept + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
