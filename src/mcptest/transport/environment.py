"""What a server gets of ours: variables, all or an allow-list; and no descriptors.

See docs/decisions/0019-environment.md. Imports next to nothing: the first server of a run waits
for it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What a program needs to find its files, its language and its terminal; then the same on Windows.
# fmt: off
NEEDED = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TMPDIR",
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES",
    "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME",
    "USERPROFILE", "WINDIR",
))
# fmt: on
MARKER = "MCPTEST_SESSION"
"""The variable whose value is unique to one server: its descendants inherit it."""


def server_environment(
    named: Mapping[str, str], ours: Mapping[str, str], *, clean: bool = False
) -> dict[str, str]:
    """The variables of a server: ours, and over them those that the caller names.

    `clean` keeps only what nearly every program needs of ours.
    """
    if not clean:
        return dict(ours) | dict(named)
    needed = {
        key: value
        for key, value in ours.items()
        # a value that starts with "()" is an exported shell function: code, not data
        if (key in NEEDED or key.startswith("LC_")) and not value.startswith("()")
    }
    return needed | dict(named)


def inherited_descriptors() -> Iterator[int]:
    """Descriptors that whoever started us left open: they are no business of what we start."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - names, as plain strings
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                yield int(name)
        except OSError:  # the one that the folder was read with
            continue
