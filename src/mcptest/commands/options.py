"""Options that several commands share, and how their words become values."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline, parse_duration, time_to_end
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.session.server_spec import ServerWords, given_twice
from mcptest.transport.files import read_input

FORMS = {
    "sarif": "write SARIF 2.1.0, for code scanning",
    "code_quality": "write a GitLab code quality report",
    "tap": "write TAP, for test harnesses",
}
"""Files in further forms, by the names of their options."""
REPORT_FILES = {
    "json_file": "write the JSON report, which `mcptest report` reads",
    "junit": "write a JUnit report",
    "markdown": "write a Markdown report",
    "badge": "write a badge for shields.io",
    "html": "write a self-contained HTML page",
    "save_baseline": "write the outcomes, to compare with later",
    "baseline": "compare with the outcomes in this file",
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


# -- The server: one group, with one text, on every command that talks to one --------------------


class _Server(argparse.Action):
    """The server, as the first argument or with `--server`: once."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if namespace.server is not None:
            raise given_twice()
        namespace.server = values


def add_server_group(
    parser: argparse.ArgumentParser, *, is_argument: bool = True, is_option: bool = True
) -> argparse._ArgumentGroup:
    """Options that name a server and say how to reach it.

    `is_argument`: it may be the first argument, because the command has no other. Not `is_option`:
    it is named in another way.
    """
    group = parser.add_argument_group("server")
    add = group.add_argument
    if is_argument:
        add(
            "server",
            nargs="?",
            metavar="SERVER",
            action=_Server,
            default=argparse.SUPPRESS,
            help="same as --server",
        )
    if is_option:
        add(
            "--server",
            metavar="S",
            action=_Server,
            help="command line, URL, name from a client configuration, or demo; "
            "or put the command after a bare --",
        )
        add(
            "--mcp-config",
            type=as_path,
            metavar="FILE",
            help="client configuration with mcpServers (default: .mcp.json)",
        )
        add(
            "--transport",
            choices=("stdio", "http", "sse"),
            help="override the transport guessed from the server",
        )
    add(
        "--header",
        action="append",
        default=[],
        metavar="K=V",
        help="HTTP header to send (repeatable)",
    )
    add("--headers", default="", metavar="K=V,K=V", help=argparse.SUPPRESS)
    add("--token-env", metavar="NAME", help="send the value of this variable as the bearer token")
    add_environment_options(add)
    return group


def add_environment_options(add: Callable[..., Any], who: str = "server") -> None:
    """The environment and the folder in which a server or a client is started."""
    add(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help=f"environment variable for the {who}; NAME alone passes yours on (repeatable)",
    )
    add(
        "--env-file",
        type=as_path,
        metavar="FILE",
        help=f"file with NAME=VALUE lines for the environment of the {who}",
    )
    add_clean_env_option(add, who)
    add("--cwd", metavar="DIR", help=f"working directory of the {who}")


def add_clean_env_option(add: Callable[..., Any], who: str = "server") -> None:
    add(
        "--clean-env",
        action="store_true",
        help=f"give the {who} only PATH, HOME and the like, plus what --env names",
    )


def add_server_options(
    parser: argparse.ArgumentParser, *, timeout: str = DEFAULT_TIMEOUT, is_argument: bool = True
) -> argparse._ArgumentGroup:
    """Options that name a server, say how to reach it, and how to talk to it."""
    group = add_server_group(parser, is_argument=is_argument)
    add_talk_options(group.add_argument, timeout)
    parser.set_defaults(timeout_given=False)
    return group


def add_talk_options(
    add: Callable[..., Any],
    timeout: str | None = DEFAULT_TIMEOUT,
    *,
    shown_timeout: str = "",
    revision: str = "auto",
    shown_revision: str = "",
    shown_startup: str = f"--timeout if given, else {USUAL_STARTUP}",
) -> None:
    """How to talk to a server. What the help shows as a default may differ from the value."""
    add(
        "--spec-version",
        default=revision,
        metavar="REV",
        help="protocol revision, such as 2025-06-18, or draft "
        f"(default: {shown_revision or revision})",
    )
    add(
        "--timeout",
        default=timeout,
        metavar="T",
        action=NotedTimeout,
        help="time limit for one request, or one test of a suite "
        f"(default: {shown_timeout or timeout})",
    )
    add(
        "--startup-timeout",
        metavar="T",
        help=f"time limit for start and handshake (default: {shown_startup})",
    )


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


def add_max_time(add: Callable[..., Any], default: str | None = None) -> None:
    add(
        "--max-time",
        default=default,
        metavar="T",
        help=f"stop after T and report what was seen (default: {default or 'no limit'})",
    )


def limit_of(arguments: argparse.Namespace) -> Deadline | None:
    """When nothing more is asked because of `--max-time`, from now."""
    if not arguments.max_time:
        return None
    seconds = duration(arguments.max_time, "--max-time")
    return Deadline.after(seconds - time_to_end(seconds))


def add_common_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("messages").add_argument
    add("--quiet", action="store_true", help="show failures only")
    add("--verbose", action="store_true", help="show more detail")
    add("--debug", action="store_true", help="show tracebacks of mcptest")
    add_no_color(add)


def add_no_color(add: Callable[..., Any]) -> None:
    add("--no-color", action="store_true", help="print plain text")


# -- Words that mean the same on every command ---------------------------------------------------


class _Renamed(argparse.Action):
    """A former spelling: it does what the new one does, and names it."""

    def __init__(self, option_strings: Sequence[str], dest: str, *, of: argparse.Action) -> None:
        super().__init__(
            option_strings,
            of.dest,
            nargs=of.nargs,
            default=argparse.SUPPRESS,
            type=of.type,  # type: ignore[arg-type]  # argparse takes what it has itself
            choices=of.choices,
            help=argparse.SUPPRESS,
        )
        self.of = of

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        sys.stderr.write(f"mcptest: {option_string} is now {self.of.option_strings[-1]}\n")
        self.of(parser, namespace, values, option_string)


def add_renamed(add: Callable[..., Any], old: str, *names: str, **settings: Any) -> None:
    """An option, and its former name, which works for one more release and is not shown."""
    add(old, action=_Renamed, of=add(*names, **settings))


def add_fixture_option(add: Callable[..., Any]) -> None:
    add(
        "--fixture",
        metavar="DIR",
        help="folder to copy for the server; {{fixture}} is the path of the copy",
    )


def add_docker(add: Callable[..., Any]) -> None:
    add("--docker", default="", metavar="IMAGE", help="start the server in this container image")


def add_output(add: Callable[..., Any], what: str, **more: Any) -> None:
    """`--output DIR`, the folder that is written, and `--overwrite`."""
    add("--output", type=as_path, metavar="DIR", help=what, **more)
    add("--overwrite", action="store_true", help="replace existing files")


def add_save_capture(add: Callable[..., Any], metavar: str = "DIR") -> None:
    add_renamed(
        add,
        "--capture",
        "--save-capture",
        type=as_path,
        metavar=metavar,
        help="write what went over the wire",
    )


def add_allow_writes(
    add: Callable[..., Any], what: str = "call tools not marked readOnlyHint, too"
) -> None:
    add_renamed(add, "--include-writes", "--allow-writes", action="store_true", help=what)


def add_allow_tool(add: Callable[..., Any]) -> None:
    add(
        "--allow-tool",
        action="append",
        default=[],
        metavar="NAME",
        help="call this tool even if it is not marked readOnlyHint (repeatable)",
    )


def add_tool(add: Callable[..., Any]) -> None:
    add(
        "--tool",
        action="append",
        default=[],
        metavar="NAME",
        help="test only this tool (repeatable)",
    )


def add_map(add: Callable[..., Any]) -> None:
    add_renamed(
        add,
        "--fixture",
        "--map",
        action="append",
        default=[],
        metavar="NAME=YOURS",
        help="use your tool, prompt or resource for this fixture (repeatable)",
    )


def add_fail_under(
    add: Callable[..., Any], old: str, what: str, convert: Callable[[str], Any] = int, **more: Any
) -> None:
    """`--fail-under N`, which the command names `old` until the next release."""
    add_renamed(
        add, old, "--fail-under", type=convert, metavar="N", help=f"fail below this {what}", **more
    )


def check_share(share: float | None) -> None:
    """UsageError for a `--fail-under` that is not a percentage."""
    if share is not None and not 0 <= share <= 100:
        raise UsageError(f"--fail-under takes a percentage from 0 to 100, not {share:g}")


def add_strict(add: Callable[..., Any]) -> None:
    add("--strict", action="store_true", help="fail on SHOULD rules, too")


def add_jobs(add: Callable[..., Any], what: str, default: str = "auto") -> None:
    add("--jobs", default="auto", metavar="N", help=f"{what} in parallel (default: {default})")


def add_seed(add: Callable[..., Any], what: str) -> None:
    add("--seed", type=int, metavar="N", help=f"seed for reproducible {what} (default: random)")


def add_json(add: Callable[..., Any]) -> None:
    add("--json", action="store_true", help="print JSON only; same as --format json")


# -- Reports -------------------------------------------------------------------------------------


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
    add("--strict-reports", action="store_true", help="fail if a report cannot be written")


def add_format_option(add: Callable[..., Any], formats: Sequence[str] = FORMATS) -> None:
    add(
        "--format",
        action=_Format,
        choices=formats,
        default="text",
        help="format on stdout; agent: the verdict, then one line per failure with its repeat "
        "command (default: text)",
    )


def is_for_a_program(arguments: argparse.Namespace) -> bool:
    """stdout holds one report, and nothing beside it."""
    return bool(getattr(arguments, "json", False) or getattr(arguments, "format", "text") != "text")


def server_words(arguments: argparse.Namespace) -> ServerWords:
    return ServerWords(
        server=arguments.server,
        command=arguments.server_command,
        way=arguments.transport,
        headers=headers_of(arguments),
        env=env_of(arguments),
        cwd=arguments.cwd,
        clean_env=arguments.clean_env,
        config=arguments.mcp_config,
    )


def given_headers(arguments: argparse.Namespace) -> dict[str, str]:
    """Those of every `--header`, and of mcp-assert's `--headers` with commas."""
    words = [*arguments.header, *filter(None, arguments.headers.split(","))]
    return pairs(words, "--header")


def headers_of(arguments: argparse.Namespace) -> dict[str, str]:
    """What is sent: the headers that were given, and the token of `--token-env`."""
    headers, name = given_headers(arguments), vars(arguments).get("token_env")
    if not name:
        return headers
    if any(key.lower() == "authorization" for key in headers):
        raise UsageError("--token-env and --header both set Authorization", hint="use one of them")
    return {**headers, "Authorization": f"Bearer {_variable(name, '--token-env')}"}


def env_of(arguments: argparse.Namespace) -> dict[str, str]:
    """What `--env-file` and `--env` set for a server or a client; a later value wins."""
    file = vars(arguments).get("env_file")
    words = [
        word if "=" in word else f"{word}={_variable(word, '--env')}" for word in arguments.env
    ]
    return {**(_variables_in(file) if file else {}), **pairs(words, "--env")}


def _variable(name: str, option: str) -> str:
    value = os.environ.get(name, "")
    if not value:  # the word may be a secret that stands in the wrong place
        raise UsageError(
            f"{option}: the variable {show(name, 40)} is not set", hint="set it, and run this again"
        )
    return value


def _variables_in(path: Path) -> dict[str, str]:
    """NAME=VALUE lines; blank lines, comments, `export` and quotes are as in a shell."""
    found = {}
    for number, line in enumerate(read_input(path).decode("utf-8", "replace").splitlines(), 1):
        text = line.strip().removeprefix("export ").lstrip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"{path}:{number}: expected NAME=VALUE")
        value = value.strip()
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        found[name.strip()] = value[1:-1] if is_quoted else value
    return found


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


USUAL_SUITES = ("evals", "mcptest.yaml", "mcptest.yml")
"""Where suites are looked for when none is named."""


def suite_paths(named: Sequence[str]) -> list[str]:
    """The suites that were named, or the usual ones of this folder."""
    paths = list(named) or [one for one in USUAL_SUITES if os.path.exists(one)]  # noqa: PTH110 - as texts
    if not paths:
        raise UsageError(
            "no suite is named, and this folder has no evals/ or mcptest.yaml",
            hint="name a file or folder, or write a first suite with mcptest init",
        )
    return paths


# -- Where a proxy listens -----------------------------------------------------------------------


def add_listening_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("proxy for a server with a URL").add_argument
    add(
        "--listen",
        metavar="HOST:PORT",
        help="address to listen on; port 0 picks a free one (default: 127.0.0.1:0)",
    )
    add("--port-file", type=as_path, metavar="FILE", help="write the port to this file")
