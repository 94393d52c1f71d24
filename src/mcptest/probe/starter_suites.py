"""Starter tests for what a server offers: from its lists alone, or from how an audit found it."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mcptest.core.errors import UsageError
from mcptest.core.masking import Masker
from mcptest.core.redaction import (
    is_credential_header,
    redaction,
    secrets_of_command,
    secrets_of_environment,
    secrets_of_url,
    variable_of_header,
)
from mcptest.core.safe_text import show
from mcptest.probe.audit_run import REFUSES_MADE_UP
from mcptest.report.audit import ONLY_AS_TASK, AuditItem, AuditReport, Health
from mcptest.report.starter_files import PlacedFile
from mcptest.schema.tool_inputs import (
    FixturePaths,
    expanded,
    input_for,
    prompt_arguments,
    template_variables,
)
from mcptest.session.pages import Offer, named_items
from mcptest.session.tool_safety import may_call, runs_only_as_task, why_not
from mcptest.suite.starters import (
    SCHEMA_FILE,
    FileNames,
    Starter,
    UnwritableError,
    WrittenServer,
    starter_yaml,
)
from mcptest.transport.files import put_file
from mcptest.transport.target import Target

_MADE_UP = "use real values"
_WRITTEN_AT_ONCE = 16


def starters_of_offer(
    offer: Offer,
    *,
    include_writes: bool,
    allow_tools: Container[str] = (),
    ground: FixturePaths | None = None,
) -> Iterator[Starter]:
    """A test for each item, none of which was called. What may write is marked to be skipped."""
    for tool in named_items(offer.tools):
        made = input_for(tool, ground)
        reason = "" if include_writes or may_call(tool, allow_tools) else why_not(tool)
        skip = ONLY_AS_TASK if runs_only_as_task(tool) else reason
        comments = _about(tool) + tuple(filter(None, (made.doubt, made.unchecked)))
        yield Starter(
            "tool",
            tool["name"],
            made.arguments,
            skip=skip,
            comments=comments,
            on_fixture=ground is not None,
        )
    for prompt in named_items(offer.prompts):
        names = prompt_arguments(prompt)
        comments = _about(prompt) + ((f"arguments are generated: {_MADE_UP}",) if names else ())
        yield Starter("prompt", prompt["name"], {one: one for one in names}, comments=comments)
    for resource in named_items(offer.resources, "uri"):
        yield Starter("resource", resource["uri"], comments=_about(resource))
    for template in named_items(offer.templates, "uriTemplate"):
        pattern = template["uriTemplate"]
        names = template_variables(pattern)
        uri = expanded(pattern, {name: name for name in names})
        skip = f"its values are generated: {_MADE_UP}" if names else ""
        comments = (f"template: {pattern}", *_about(template))
        yield Starter("resource", uri, skip=skip, comments=comments)


def _about(item: Mapping[str, Any]) -> tuple[str, ...]:
    words = item.get("description")
    return (words,) if isinstance(words, str) and words.strip() else ()


def starters_of_audit(
    report: AuditReport, *, ground: FixturePaths | None = None, fixture: str = ""
) -> Iterator[Starter]:
    """A test for each item that expects what was seen, so that it passes at once.

    What crashed is expected to answer: such a test fails until it does. `fixture` is the folder
    that stood for the fixture, which a suite calls by its variable.
    """
    for item in report.items:
        if item.name == "(no name)":
            continue
        starter = _of_item(item)
        if ground is not None and fixture:
            args = _named_again(starter.args, fixture, ground.folder)
            yield replace(starter, args=args, on_fixture=True)
        else:
            yield starter


def _of_item(item: AuditItem) -> Starter:
    comments = [item.description] if item.description.strip() else []
    skip = item.detail if item.health is Health.SKIPPED else ""
    expect: dict[str, Any] = {"not_error": True}
    refused = item.health is Health.REFUSED or (
        item.health is Health.HEALTHY and item.detail.startswith(REFUSES_MADE_UP)
    )
    if item.asks_back and not item.health.is_broken:
        skip = "it sends requests to the client: add client_capabilities to the server"
    elif item.health.is_broken or item.findings:
        comments.append(f"found by the audit: {item.detail or item.findings[0]}")
    elif item.is_error:
        expect = {"is_error": True}
        comments.append(f"the input is generated and gets an error: {item.detail}")
        comments.append("use real values and expect not_error: true")
    elif refused:
        skip = f"the input is generated and rejected: {item.detail}"
    elif item.health is Health.HEALTHY and item.has_text:
        expect["not_empty"] = True
    if item.kind in ("tool", "prompt"):
        return Starter(item.kind, item.name, item.input, expect, skip, tuple(comments))
    uri = str(item.input.get("uri", item.name))
    return Starter("resource", uri, {}, expect, skip, tuple(comments))


def _named_again(value: Any, path: str, variable: str) -> Any:
    """The value with the fixture's place under the name that suites have for it."""
    if isinstance(value, str):
        return value.replace(path, variable)
    if isinstance(value, Mapping):
        return {key: _named_again(one, path, variable) for key, one in value.items()}
    if isinstance(value, list):
        return [_named_again(one, path, variable) for one in value]
    return value


# -- Putting starter suites into a folder --------------------------------------------------------

_PREFIXES = {"tool": "", "prompt": "prompt-", "resource": "resource-"}


def place_files(
    folder: Path, files: Iterable[tuple[PlacedFile, str]], *, overwrite: bool
) -> list[PlacedFile]:
    """Write each text to its file, and the schema beside them; what became of each.

    A file that exists is kept unless `overwrite`. Raises UsageError where none can be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write to {folder}: {error.strerror}") from None

    def place(one: tuple[PlacedFile, str]) -> PlacedFile:
        file, text = one
        if file.how == "left out":
            return file
        existed = os.path.lexists(folder / file.file)
        if not put(folder / file.file, text.encode(), overwrite=overwrite):
            return replace(file, how="kept", reason="it already exists")
        return replace(file, how="replaced") if existed else file

    # Each waits for the disk, which takes several at once: hundreds would take seconds.
    with ThreadPoolExecutor(_WRITTEN_AT_ONCE) as threads:
        placed = list(threads.map(place, files))
    if any(one.how in ("created", "replaced") for one in placed):
        place_schema(folder)
    return placed


def place_starters(
    folder: Path, starters: Iterable[Starter], server: WrittenServer, *, overwrite: bool = False
) -> list[PlacedFile]:
    names, titles = FileNames(), _Titles()
    files: list[tuple[PlacedFile, str]] = []
    for starter in starters:
        subject, text = redaction.text(starter.subject), ""
        name, title = names.name_for(subject, _PREFIXES[starter.kind]), titles.title_of(starter)
        file = PlacedFile(show(subject, 120), name, "created")
        try:
            if subject != starter.subject:
                raise UnwritableError("its name has a secret")
            text = starter_yaml(starter, server, title)
            skipped = "\nskip: true" in text
            erring = not skipped and starter.expect.get("is_error") is True
            file = replace(file, skipped=skipped, expects_error=erring)
        except UnwritableError as error:
            file = replace(file, how="left out", reason=str(error))
        files.append((file, text))
    return place_files(folder, files, overwrite=overwrite)


def put(path: Path, content: bytes, *, overwrite: bool) -> bool:
    """Write a whole file, never through a link; False when one is there and stays."""
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            put_file(folder, path.name, content, overwrite=overwrite)
        finally:
            os.close(folder)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from None
    return True


def place_schema(folder: Path) -> None:
    """The schema that the first line of each file names, so that editors need no network."""
    from mcptest.suite.editor_schema import suite_json_schema

    text = json.dumps(suite_json_schema(), indent=1) + "\n"
    put(folder / SCHEMA_FILE, text.encode(), overwrite=True)


class _Titles:
    """Names of tests: each only once, whatever the server calls its things."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def title_of(self, starter: Starter) -> str:
        words = {"tool": "{} answers", "prompt": "prompt {} is given", "resource": "{} can be read"}
        title = free = words[starter.kind].format(show(starter.subject, 100))
        number = self._taken.get(title, 1)
        while free in self._taken:
            number += 1
            free = f"{title} ({number})"
        self._taken[title] = self._taken[free] = number
        return free


# -- The `server` block of a suite that is written for a target, without its secrets -------------


def written_server(
    target: Target, *, spec_version: str = "auto", docker: str = ""
) -> WrittenServer:
    """What a suite says of the server; secrets become variables of the environment."""
    found = secrets_of_command(target.command) | secrets_of_url(target.url)
    masker = Masker((*target.referenced, *found))
    if any(masker.text(one) != one for one in (*target.command, target.url, target.cwd or "")):
        hint = "the server's command or URL has a secret: pass it with --server when you run this"
        return WrittenServer(comments=(hint,))
    needs: list[str] = []

    def written(value: str, secret_in: str) -> str:
        if not secret_in:
            return value.replace("$", "$$")
        needs.append(secret_in)
        return f"${{{secret_in}}}"

    block: dict[str, Any] = {}
    if target.way == "stdio":
        hidden = {*secrets_of_environment(target.env), *target.referenced}
        env = {
            name: written(one, name if one in hidden else "") for name, one in target.env.items()
        }
        block = {
            "command": target.command[0],
            "args": list(target.command[1:]),
            "env": env,
            "cwd": target.cwd,
            "clean_env": target.clean_env,
        }
    else:
        headers = {
            name: written(one, variable_of_header(name) if is_credential_header(name) else "")
            for name, one in target.headers.items()
        }
        block = {"transport": target.way, "url": target.url, "headers": headers}
    block |= {"docker": docker, "spec_version": spec_version if spec_version != "auto" else ""}
    comments = (f"needs in the environment: {', '.join(needs)}",) if needs else ()
    said = {name: one for name, one in block.items() if one or name in ("command", "url")}
    return WrittenServer(said, comments, tuple(needs))
