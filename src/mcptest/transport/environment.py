"""What a server may see of our environment: an allow-list, and what the caller names.

The caller's secrets are not the server's. Imports nothing: the first server of a run waits for it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

# What a program needs to find its files, its language and its terminal; then the same on Windows.
# fmt: off
INHERITED = frozenset((
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "TMPDIR",
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES",
    "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME",
    "USERPROFILE", "WINDIR",
))
# fmt: on
MARKER = "MCPTEST_SESSION"
"""The variable whose value is unique to one server: its descendants inherit it."""


def server_environment(named: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """What a server may see of our environment, with the variables that the caller names."""
    inherited = {
        key: value
        for key, value in ours.items()
        # a value that starts with "()" is an exported shell function: code, not data
        if (key in INHERITED or key.startswith("LC_")) and not value.startswith("()")
    }
    return inherited | dict(named)
