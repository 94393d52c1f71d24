"""What was meant where a word of the command line is mistyped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")
_UNKNOWN = re.compile(r"unrecognized arguments: (-[^\s=]+)")


def meant(complaint: str, options: Iterable[str]) -> str:
    """The option or choice that is near to the one that argparse complains of, or nothing."""
    if found := _UNKNOWN.search(complaint):
        typed, known = found[1], list(options)
    elif found := _CHOICE.search(complaint):
        typed, known = found[1], re.findall(r"[\w.-]+", found[2])
    else:
        return ""
    return next(iter(difflib.get_close_matches(typed, known, n=1, cutoff=0.7)), "")
