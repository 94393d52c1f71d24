"""The options of the commands: how they are declared, and how their words become values.

A command declares an option as its help shows it, `add("--runs N", "inputs for each tool")`, in
the group of its title. What several commands have alike stands in the table of this module.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcptest.core.errors import UsageError
from mcptest.core.limits import Deadline, parse_duration, time_to_end
from mcptest.core.revision import Revision, parse_revision
from mcptest.core.safe_text import show
from mcptest.session.server_spec import ServerWords, given_twice, target_of
from mcptest.transport.files import read_input
from mcptest.transport.target import Target

FORMATS = ("text", "json", "agent", "tap")
"""What can stand on stdout."""
FORMS = ("--sarif", "--code-quality", "--tap")
"""Files in further forms."""
USUAL_STARTUP = "30s"
CAPABILITIES = ("permissive", "strict", "probe")
"""What may be asked of the optional capabilities of a client."""
HIDDEN = argparse.SUPPRESS
"""The help of an option that is not shown."""
_MOST_JOBS = 1_000

_KNOWN: Final[dict[str, tuple[Any, ...]]] = {
    "--tool": ("NAME", "test only this tool (repeatable)"),
    "--allow-tool": ("NAME", "call this tool even if it is not marked readOnlyHint (repeatable)"),
    "--allow-writes": ("", "call tools not marked readOnlyHint, too", {"was": "--include-writes"}),
    "--map": (
        "NAME=YOURS",
        "use your tool, prompt or resource for this fixture (repeatable)",
        {"was": "--fixture"},
    ),
    "--suite": ("PATH", "same as PATH (repeatable)"),
    "--fixture": (
        "DIR",
        "folder to copy for the server; {{fixture}} is the path of the copy",
        {"type": str},
    ),
    "--docker": ("IMAGE", "start the server in this container image", {"default": ""}),
    "--max-time": ("T", "stop after T and report what was seen (default: no limit)"),
    "--strict": ("", "fail on SHOULD rules, too"),
    "--overwrite": ("", "replace existing files"),
    "--save-capture": ("DIR", "write what went over the wire", {"was": "--capture"}),
    "--json": ("", "print JSON only; same as --format json"),
    "--json-file": ("FILE", "write the JSON report, which `mcptest report` reads"),
    "--junit": ("FILE", "write a JUnit report"),
    "--markdown": ("FILE", "write a Markdown report"),
    "--badge": ("FILE", "write a badge for shields.io"),
    "--html": ("FILE", "write a self-contained HTML page"),
    "--save-baseline": ("FILE", "write the outcomes, to compare with later"),
    "--baseline": ("FILE", "compare with the outcomes in this file"),
    "--sarif": ("FILE", "write SARIF 2.1.0, for code scanning"),
    "--code-quality": ("FILE", "write a GitLab code quality report"),
    "--tap": ("FILE", "write TAP, for test harnesses"),
    "--strict-reports": ("", "fail if a report cannot be written"),
    "--quiet": ("", "show failures only"),
    "--verbose": ("", "show more detail"),
    "--debug": ("", "show tracebacks of mcptest"),
    "--no-color": ("", "print plain text"),
}
"""Options that mean the same on every command that has them: what their value is called, what the
help says, and what else argparse is to know."""


def as_path(word: str) -> Path:
    """The type of an option that names a file."""
    return Path(word)


class OptionGroup:
    """The options below one title of the help; without a title those that need none."""

    def __init__(self, parser: argparse.ArgumentParser, title: str = "") -> None:
        self._add = (parser.add_argument_group(title) if title else parser).add_argument

    def __call__(self, spelled: str, about: str, *, was: str = "", **more: Any) -> None:
        """Declare an option as the help shows it: `--runs N`, or `--strict`, which is a flag.

        What is `(repeatable)` is a list, and FILE and DIR are paths, unless `more` says otherwise.
        `was` is a former name, which works for one more release.
        """
        *names, last = spelled.split()
        if names and not last.startswith("-"):
            more["metavar"] = last
        else:
            names.append(last)
            if last.startswith("-") and not {"action", "choices"} & more.keys():
                more["action"] = "store_true"
        if last in ("FILE", "DIR"):
            more.setdefault("type", as_path)
        if "(repeatable)" in about:
            more = {"action": "append", "default": [], **more}
        action = self._add(*names, help=about, **more)
        if was:
            self._add(was, action=_Renamed, of=action)

    def known(self, *names: str) -> None:
        """Those that other commands have as well."""
        for name in names:
            metavar, about, *more = _KNOWN[name]
            self(f"{name} {metavar}", about, **dict(*more))


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
            help=HIDDEN,
        )
        self.of = of

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        sys.stderr.write(f"mcptest: {option_string} is now {self.of.option_strings[-1]}\n")
        self.of(parser, namespace, values, option_string)


# -- The server: one group, with one text, on every command that talks to one --------------------


class _Server(argparse.Action):
    """The server, as the first argument or with `--server`: once."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if namespace.server is not None:
            raise given_twice()
        namespace.server = values


def add_server_group(
    parser: argparse.ArgumentParser, *, is_argument: bool = True, is_option: bool = True
) -> OptionGroup:
    """Options that name a server and say how to reach it.

    `is_argument`: it may be the first argument, because the command has no other. Not `is_option`:
    it is named in another way.
    """
    add = OptionGroup(parser, "server")
    if is_argument:
        add("server SERVER", "same as --server", nargs="?", action=_Server, default=HIDDEN)
    if is_option:
        about = "command line, URL, name from a client configuration, or demo; "
        add("--server S", f"{about}or put the command after a bare --", action=_Server)
        add("--mcp-config FILE", "client configuration with mcpServers (default: .mcp.json)")
        about = "override the transport guessed from the server"
        add("--transport", about, choices=("stdio", "http", "sse"))
    add("--header K=V", "HTTP header to send (repeatable)")
    add("--headers K=V,K=V", HIDDEN, default="")
    add("--token-env NAME", "send the value of this variable as the bearer token")
    add_environment_options(add)
    return add


def add_environment_options(add: OptionGroup, who: str = "server") -> None:
    """The environment and the folder in which a server or a client is started."""
    about = f"environment variable for the {who}; NAME alone passes yours on (repeatable)"
    add("--env NAME[=VALUE]", about)
    add("--env-file FILE", f"file with NAME=VALUE lines for the environment of the {who}")
    add_clean_env_option(add, who)
    add("--cwd DIR", f"working directory of the {who}", type=str)


def add_clean_env_option(add: OptionGroup, who: str = "server") -> None:
    add("--clean-env", f"give the {who} only PATH, HOME and the like, plus what --env names")


def add_server_options(
    parser: argparse.ArgumentParser, *, timeout: str = "30s", is_argument: bool = True
) -> OptionGroup:
    """Options that name a server, say how to reach it, and how to talk to it."""
    add = add_server_group(parser, is_argument=is_argument)
    add_talk_options(add, timeout)
    parser.set_defaults(timeout_given=False)
    return add


def add_talk_options(
    add: OptionGroup,
    timeout: str | None = "30s",
    *,
    shown_timeout: str = "",
    revision: str = "auto",
    shown_revision: str = "",
    shown_startup: str = f"--timeout if given, else {USUAL_STARTUP}",
) -> None:
    """How to talk to a server. What the help shows as a default may differ from the value."""
    about = "protocol revision, such as 2025-06-18, or draft"
    shown = f"(default: {shown_revision or revision})"
    add("--spec-version REV", f"{about} {shown}", default=revision)
    about = "time limit for one request, or one test of a suite"
    shown = f"(default: {shown_timeout or timeout})"
    add("--timeout T", f"{about} {shown}", default=timeout, action=_NotedTimeout)
    add("--startup-timeout T", f"time limit for start and handshake (default: {shown_startup})")


class _NotedTimeout(argparse.Action):
    """`--timeout T`; whether it was given decides how long a start may take."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        namespace.timeout = values
        namespace.timeout_given = True


def add_listening_options(parser: argparse.ArgumentParser) -> None:
    """Where a proxy listens."""
    add = OptionGroup(parser, "proxy for a server with a URL")
    about = "address to listen on; port 0 picks a free one (default: 127.0.0.1:0)"
    add("--listen HOST:PORT", about)
    add("--port-file FILE", "write the port to this file")


# -- Reports, and what is said meanwhile ---------------------------------------------------------


class _Format(argparse.Action):
    """`--format json` is `--json`; whoever else reads stdout wants no progress beside it."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        namespace.format = values
        namespace.json = values == "json"
        if values == "agent":
            namespace.quiet = True


def add_format_option(add: OptionGroup, formats: Sequence[str] = FORMATS) -> None:
    about = "format on stdout; agent: the verdict, then one line per failure with its repeat "
    about += "command (default: text)"
    add("--format", about, action=_Format, choices=formats, default="text")


def add_report_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str] = FORMATS,
    *,
    keeps_captures: bool = True,
) -> None:
    add = OptionGroup(parser, "reports")
    add_format_option(add, formats)
    add.known("--json", "--json-file", "--junit", "--markdown", "--html", *FORMS)
    add.known("--strict-reports", *(["--save-capture"] if keeps_captures else []))


def add_common_options(parser: argparse.ArgumentParser) -> None:
    OptionGroup(parser, "messages").known("--quiet", "--verbose", "--debug", "--no-color")


# -- Suites: which tests, how they run, which reports --------------------------------------------


def add_options_of_run(parser: argparse.ArgumentParser) -> None:
    """Everything that `run` takes, and so `ci`."""
    add_suite_options(parser)
    add_servers_of_suites(parser)
    add = add_run_options(parser)
    about = "look for positions nearby at which a failing test passes; changes no file"
    add("--fix", about)
    add_suite_reports(parser)
    add_common_options(parser)


def add_suite_options(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "selection")
    add_paths(add)
    add("--config FILE", "same as PATH (repeatable)", type=str)
    about = "run tests whose names match; takes and, or, not, *, =NAME"
    add("-k EXPR", about, dest="pattern", default="")
    add("--tag TAG", "run tests with this tag (repeatable)")
    add("--shard I/N", "run part I of N of the tests")
    add("--last-failed", "run only tests that failed last time")
    add("--keep-going", "run the valid tests of a broken suite, and still fail")
    add("--list", "list what would run, and run nothing")


def add_paths(add: OptionGroup) -> None:
    add("paths PATH", "suite files and folders (default: evals/ and mcptest.yaml)", nargs="*")
    add.known("--suite")


def add_servers_of_suites(parser: argparse.ArgumentParser, *, is_option: bool = True) -> None:
    """The server for all tests, and how to talk to those that the suites name."""
    add_talk_options(
        add_server_group(parser, is_argument=False, is_option=is_option),
        revision="",
        shown_revision="from the suite, else auto",
        shown_startup="part of --timeout",
    )
    parser.set_defaults(timeout_given=False)


def add_run_options(parser: argparse.ArgumentParser) -> OptionGroup:
    """How tests run. Gives what adds further options to the group."""
    add = OptionGroup(parser, "execution")
    add.known("--fixture")
    add("--docker IMAGE", "start servers in this container image", default="")
    add("--lenient", "warn about malformed responses that can still be read")
    add("--quick-end", "stop servers after 50ms instead of waiting for them to exit")
    add("--warm-start", "start servers faster: Node's compile cache, npx only once")
    add("--jobs N", "tests in parallel (default: one per core; 1 for files with one test each)")
    about = "start a server for each test, or share one (default: fresh)"
    add("--isolation", about, choices=("fresh", "shared"))
    add("--reuse-server", HIDDEN)
    add("--in-flight N", "calls in parallel on a shared server (default: 1)", type=int, default=1)
    add("--trials N", "run each test N times (default: 1)", type=int, default=1)
    add("-x", "stop after the first failure", dest="fail_fast")
    add("--all-failures", "show every failed expectation, not only the first")
    add.known("--save-capture")
    return add


def add_suite_reports(parser: argparse.ArgumentParser) -> None:
    add = OptionGroup(parser, "reports")
    add.known("--json-file", "--junit", "--markdown", "--badge", "--html")
    add.known("--save-baseline", "--baseline", *FORMS)
    add_format_option(add)
    add.known("--json", "--strict-reports")


# -- What the words mean -------------------------------------------------------------------------


def check_grade(grade: str | None) -> None:
    """UsageError for a `--min-grade` that is not one."""
    if grade is not None and not re.fullmatch(r"A\+|[A-D][+-]?|F", grade):
        raise UsageError(f"--min-grade takes A+ to F, not {show(grade, 20)!r}")


def is_for_a_program(arguments: argparse.Namespace) -> bool:
    """stdout holds one report, and nothing beside it."""
    return bool(getattr(arguments, "json", False) or getattr(arguments, "format", "text") != "text")


def startup_of(arguments: argparse.Namespace) -> float:
    """Seconds for start and handshake: as `--startup-timeout` says, else as `--timeout` does.

    Where neither is given, a start may take 30 s, also where a request may take less.
    """
    text = arguments.startup_timeout
    if not text and getattr(arguments, "timeout_given", False):
        text = arguments.timeout
    return duration(text or USUAL_STARTUP, "--startup-timeout")


def limit_of(arguments: argparse.Namespace) -> Deadline | None:
    """When nothing more is asked because of `--max-time`, from now."""
    if not arguments.max_time:
        return None
    seconds = duration(arguments.max_time, "--max-time")
    return Deadline.after(seconds - time_to_end(seconds))


def check_share(share: float | None) -> None:
    """UsageError for a `--fail-under` that is not a percentage."""
    if share is not None and not 0 <= share <= 100:
        raise UsageError(f"--fail-under takes a percentage from 0 to 100, not {share:g}")


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


def named_target(arguments: argparse.Namespace) -> Target:
    """The server that the options name. UsageError when they can't be understood."""
    return target_of(server_words(arguments))


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
