"""The entry point. `--version` is answered before anything is imported."""

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
        from mcptest import __version__

        sys.stdout.write(f"mcptest {__version__}\n")
        return 0
    import gc

    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    try:
        return _run(words)
    except KeyboardInterrupt:  # while we were still busy with ourselves
        sys.stderr.write("mcptest: interrupted\n")
        return _INTERRUPTED
    finally:
        gc.freeze()  # the interpreter need not look for garbage once more before it ends


def _run(words: "Sequence[str]") -> int:
    if words[:1] == ["run"]:
        from mcptest.cli.beginning import run_suites

        return run_suites(words)
    from mcptest.cli.app import run

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
