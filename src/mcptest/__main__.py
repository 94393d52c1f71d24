"""The entry point. `--version` is answered before anything is imported."""

import sys

_OBJECTS_BEFORE_A_COLLECTION = 20_000
"""Python's own number, 700, costs a tenth of our start: all that is made there stays."""


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from mcptest import __version__

        sys.stdout.write(f"mcptest {__version__}\n")
        return 0
    import gc

    gc.set_threshold(_OBJECTS_BEFORE_A_COLLECTION)
    from mcptest.cli.app import run

    try:
        return run(sys.argv[1:])
    finally:
        gc.freeze()  # the interpreter need not look for garbage once more before it ends


if __name__ == "__main__":
    sys.exit(main())
