"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline, parse_duration, time_to_end
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.session.server_spec import ServerWords

FORMS = {
    "sarif": "SARIF 2.1.0, for code scanning",
    "code_quality": "the code quality report of GitLab",
    "tap": "TAP, for test harnesses",
}
"""Files in further forms, by the names of their options."""
REPORT_FILES = {
    "json_file": "the JSON report as well; `mcptest report` reads it",
    "junit": "a JUnit report as well",
    "markdown": "a Markdown report as well",
    "badge": "a badge for shields.io",
    "html": "one self-contained page with everything",
    "save_baseline": "keep the outcomes, to compare with later",
    "baseline": "compare with the outcomes kept there",
}
"""Reports of runs, and what they are compared with, by the names of their options."""
FORMATS = ("text", "json", "agent", "tap")
"""What can stand on stdout."""
DEFAULT_TIMEOUT = "30s"
USUAL_STARTUP = "30s"
CAPABILITIES = ("permissive", "strict", "probe")
"""What may be asked of the optional capabilities of a client."""
_MOST_JOBS = 1_000


def as_path(word: str) -> Path:
    """The type of an option that names a file. Most runs are given none, and import no pathlib."""
    return Path(word)


def add_server_group(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """What names a server and says how to reach it."""
    group = parser.add_argument_group("the server")
    add = group.add_argument
    add(
        "--server",
        metavar="S",
        help="a command line, a URL, a name from a client configuration, or demo; "
        "or give the command after a bare --",
    )
    add("--transport", choices=("stdio", "http", "sse"), help="instead of the guess from --server")
    add("--header", action="append", default=[], metavar="K=V", help="may repeat")
    add("--headers", default="", metavar="K=V,K=V", help=argparse.SUPPRESS)
    add("--env", action="append", default=[], metavar="K=V", help="may repeat")
    add_clean_env_option(add)
    add("--cwd", metavar="DIR", help="where the server is started")
    add("--mcp-config", type=as_path, metavar="FILE", help="client configuration with mcpServers")
    return group


def add_server_options(
    parser: argparse.ArgumentParser, *, timeout: str = DEFAULT_TIMEOUT
) -> argparse._ArgumentGroup:
    """What names a server, says how to reach it, and how to talk with it."""
    group = add_server_group(parser)
    add = group.add_argument
    add(
        "--spec-version",
        default="auto",
        metavar="REV",
        help="auto (default), a revision such as 2025-06-18, or draft",
    )
    add(
        "--timeout",
        default=timeout,
        metavar="T",
        action=NotedTimeout,
        help=f"for each request ({timeout})",
    )
    add(
        "--startup-timeout",
        metavar="T",
        help=f"for start and handshake (as --timeout, if that is given; else {USUAL_STARTUP})",
    )
    parser.set_defaults(timeout_given=False)
    return group


class NotedTimeout(argparse.Action):
    """`--timeout T`; whether it was given decides how long a start may take."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        namespace.timeout = values
        namespace.timeout_given = True


def startup_of(arguments: argparse.Namespace) -> float:
    """Seconds for start and handshake: as `--startup-timeout` says, else as `--timeout` does.

    Where neither is given, a start may take 30 s, also where a request may take less.
    """
    text = arguments.startup_timeout
    if not text and getattr(arguments, "timeout_given", False):
        text = arguments.timeout
    return duration(text or USUAL_STARTUP, "--startup-timeout")


def add_clean_env_option(add: Callable[..., Any], who: str = "the server") -> None:
    add(
        "--clean-env",
        action="store_true",
        help=f"{who} sees of the environment only PATH, HOME and the like, and what --env names",
    )


def add_max_time(add: Callable[..., Any]) -> None:
    add("--max-time", metavar="T", help="for the whole command; what was seen by then is told")


def limit_of(arguments: argparse.Namespace) -> Deadline | None:
    """When nothing more is asked because of `--max-time`, from now."""
    if not arguments.max_time:
        return None
    seconds = duration(arguments.max_time, "--max-time")
    return Deadline.after(seconds - time_to_end(seconds))


def add_common_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("messages").add_argument
    add("--quiet", action="store_true", help="only what went wrong")
    add("--verbose", action="store_true", help="say more")
    add("--debug", action="store_true", help="show tracebacks")
    add("--no-color", action="store_true", help="plain text")


class _Format(argparse.Action):
    """`--format json` is `--json`; whoever else reads stdout wants no progress beside it."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        namespace.format = values
        namespace.json = values == "json"
        if values == "agent":
            namespace.quiet = True


def add_report_files(add: Callable[..., Any], names: Iterable[str]) -> None:
    """Options for report files, by the names of `REPORT_FILES`."""
    for name in names:
        add(f"--{name.replace('_', '-')}", type=as_path, metavar="FILE", help=REPORT_FILES[name])


def add_file_options(add: Callable[..., Any]) -> None:
    for name, words in FORMS.items():
        add(f"--{name.replace('_', '-')}", type=as_path, metavar="FILE", help=words)


def add_strict_option(add: Callable[..., Any]) -> None:
    add("--strict-reports", action="store_true", help="a report that can't be written fails")


def add_format_option(add: Callable[..., Any], formats: Sequence[str] = FORMATS) -> None:
    add(
        "--format",
        action=_Format,
        choices=formats,
        default="text",
        help="on stdout (text); agent: the verdict, then a line for each failure with the command "
        "that repeats it",
    )


def is_for_a_program(arguments: argparse.Namespace) -> bool:
    """stdout holds one report, and nothing beside it."""
    return bool(arguments.json or getattr(arguments, "format", "text") != "text")


def server_words(arguments: argparse.Namespace) -> ServerWords:
    return ServerWords(
        server=arguments.server,
        command=arguments.server_command,
        way=arguments.transport,
        headers=headers_of(arguments),
        env=pairs(arguments.env, "--env"),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        config=arguments.mcp_config,
    )


def headers_of(arguments: argparse.Namespace) -> dict[str, str]:
    """`--header` as often as one likes, and mcp-assert's `--headers` with commas."""
    words = [*arguments.header, *filter(None, arguments.headers.split(","))]
    return pairs(words, "--header")


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """`K=V` words as a table. A header may also be written `K: V`."""
    table = {}
    for word in words:
        key, separator, value = word.partition("=")
        if option == "--header" and ":" in key:
            key, separator, value = word.partition(":")
        if not separator or not key.strip():
            # the rest may be a secret, as in a header that was pasted without its colon
            raise UsageError(f"{option} takes K=V, not {show(word.split(' ')[0], 40)!r}")
        table[key.strip()] = value.strip() if option == "--header" else value
    return table


def wanted_revision(text: str) -> Revision | None:
    """None means: find out."""
    return None if text == "auto" else parse_revision(text)


def wanted_jobs(text: str) -> int | None:
    """The number of `--jobs`; None means `auto`."""
    if text == "auto":
        return None
    if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST_JOBS:
        return int(text)
    raise UsageError(f"--jobs takes auto or a number up to {_MOST_JOBS}, not {show(text, 40)!r}")


def duration(text: str, option: str) -> float:
    try:
        return parse_duration(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error.message}", hint=error.hint) from None


# -- Where a proxy listens -----------------------------------------------------------------------


def add_listening_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("between clients and a server with a URL").add_argument
    add(
        "--listen",
        metavar="HOST:PORT",
        help="where on this machine; port 0 is any that is free (127.0.0.1:0)",
    )
    add("--port-file", type=Path, metavar="FILE", help="write the port there")
