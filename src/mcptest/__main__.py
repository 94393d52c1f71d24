"""The entry point. `--version` is answered before anything is imported."""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from mcptest import __version__

        sys.stdout.write(f"mcptest {__version__}\n")
        return 0
    from mcptest.cli.app import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
