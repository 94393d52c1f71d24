"""Why a server would not start, for a person: what is wrong with its command, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

from mcptest.model.errors import ErrorKind, PeerError
from mcptest.model.show import show
from mcptest.transport.input_file import open_input


def spawn_error(error: OSError | ValueError, program: str, path: str, cwd: str | None) -> PeerError:
    """The error of a start that failed. `path` is the PATH that the server would have had."""
    if not isinstance(error, OSError):
        return _failed(f"the server command can't be used: {error}")
    if cwd is not None and not Path(cwd).is_dir():
        what = "is not a directory" if Path(cwd).exists() else "does not exist"
        return _failed(f"the working directory {_quoted(cwd)} {what}")
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return _not_found(program, path, cwd)
    if isinstance(error, PermissionError):
        return _not_permitted(program, cwd)
    if error.errno == errno.ENOEXEC:
        return _failed(
            f"{_quoted(program)} is not a program this system can run ({error.strerror})",
            "a script needs a first line such as #!/usr/bin/env python3",
        )
    return _failed(f"{_quoted(program)} could not be started: {error.strerror or error}")


def _not_found(program: str, path: str, cwd: str | None) -> PeerError:
    found = _locate(program, path, cwd)
    interpreter = _interpreter_of(found) if found else None
    if interpreter:
        return _failed(
            f"{_quoted(program)} can't be started: its interpreter {_quoted(interpreter)} "
            "does not exist",
            "correct the first line of the script, or install the interpreter",
        )
    if found:
        return _failed(
            f"{_quoted(program)} exists but can't be started: its loader does not exist",
            "it was probably built for another system",
        )
    if any(letter.isspace() for letter in program):
        hint = "this is one word with spaces in it; write the arguments as separate words"
    else:
        hint = _nearest(program, path, cwd)
    where = "" if os.sep in program else " on the PATH"
    return _failed(f"command not found: there is no {_quoted(program)}{where}", hint)


def _not_permitted(program: str, cwd: str | None) -> PeerError:
    target = Path(cwd or ".", program)
    if target.is_dir():
        return _failed(f"{_quoted(program)} is a directory, not a program")
    return _failed(
        f"{_quoted(program)} is not executable",
        f"chmod +x {show(program)}, or name its interpreter",
    )


def _locate(program: str, path: str, cwd: str | None) -> str | None:
    import shutil

    if os.sep in program:
        target = Path(cwd or ".", program)
        return str(target) if target.exists() else None
    return shutil.which(program, path=path)


def _interpreter_of(script: str) -> str | None:
    try:
        with open_input(script, pipes=False) as file:
            first = file.read(256).split(b"\n", 1)[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].split()
    # a carriage return is part of the name for the kernel, and the usual reason for this error
    return words[0].decode("utf-8", "backslashreplace") + ("\r" * first.endswith(b"\r"))


def _nearest(program: str, path: str, cwd: str | None) -> str:
    import difflib

    if os.sep in program:
        folder, name = os.path.split(program)
        names = _names_in([os.path.join(cwd or ".", folder)])  # noqa: PTH118 - folder may be ""
    else:
        folder, name = "", program
        names = _names_in(path.split(os.pathsep))
    for near in difflib.get_close_matches(name, names, n=5, cutoff=0.75):
        meant = str(Path(folder, near))
        found = _locate(meant, path, cwd)
        if found and Path(found).is_file():  # a folder of that name is no program
            return f"did you mean {show(meant)}?"
    return "check the spelling, or give the full path"


def _names_in(folders: Iterable[str]) -> list[str]:
    names: set[str] = set()
    for folder in folders:
        try:
            names.update(os.listdir(folder or "."))  # noqa: PTH208 - names, as plain strings
        except OSError:
            continue  # a PATH may name folders that are not there
    return sorted(names)


def _quoted(text: str) -> str:
    return f"'{show(text)}'"


def _failed(message: str, hint: str = "") -> PeerError:
    return PeerError(ErrorKind.SPAWN_FAILED, message, hint=hint)
