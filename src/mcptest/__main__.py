"""The entry point. `--version` is answered before anything is imported."""

import os
import sys

TYPE_CHECKING = False  # as in `typing`, which is not imported before the first server is started
if TYPE_CHECKING:
    from collections.abc import Sequence

_OBJECTS_BEFORE_A_COLLECTION = 100_000
"""More than our start makes. It all stays, and looking through it costs a tenth of the start."""
_INTERRUPTED = 130


def main() -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:]
    if words in (["--version"], ["-V"], ["version"]):
        return _tell_version()
    from mcptest.cli.beginning import leave_on_signals

    leave_on_signals()
    import gc

    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    try:
        code = _run(words)
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
            sys.stderr.write(f"mcptest: can't write the output: {error.strerror}\n")
        return 1
    return 0


def _run(words: "Sequence[str]") -> int:
    if words[:1] == ["run"]:
        from mcptest.cli.beginning import run_suites

        return run_suites(words)
    from mcptest.cli.app import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
