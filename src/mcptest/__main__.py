"""The entry point. `--version` is answered before anything is imported."""

import os
import sys

_OBJECTS_BEFORE_A_COLLECTION = 100_000
"""More than our start makes. It all stays, and looking through it costs a tenth of the start."""
_INTERRUPTED = 130
_COULD_NOT_START = 2
_NOT_ON_WINDOWS = (
    "mcptest: Windows is not supported; mcptest runs on Linux and macOS\n"
    "On Windows, install it in WSL and run it there.\n"
)


def main() -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:]
    if words in (["--version"], ["-V"], ["version"]):
        return _tell_version()
    if sys.platform == "win32":
        sys.stderr.write(_NOT_ON_WINDOWS)
        return _COULD_NOT_START
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next
        from mcptest.commands.completion.cli import answer

        answer()
    from mcptest.commands.early_signals import leave_on_signals

    leave_on_signals()
    import gc

    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    from mcptest.commands.app import run

    try:
        code = run(words)
    except KeyboardInterrupt:  # while we were still busy with ourselves
        sys.stderr.write("mcptest: interrupted\n")
        code = _INTERRUPTED
    finally:
        gc.freeze()  # the interpreter need not look for garbage once more before it ends
    leave_on_signals(code)
    if code == _INTERRUPTED:
        _leave_interrupted()
    return code


def _leave_interrupted() -> None:
    """Without the interpreter's own way out.

    An interrupt that came while a text was executed, as for a dataclass, makes it end itself with
    SIGINT at last, though the interrupt was caught; and it would wait for threads.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, full, or not there
            continue
    os._exit(_INTERRUPTED)


def _tell_version() -> int:
    from mcptest import __version__

    try:
        os.write(1, f"mcptest {__version__}\n".encode())
    except OSError as error:
        if sys.stderr is not None:
            sys.stderr.write(f"mcptest: cannot write the output: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
