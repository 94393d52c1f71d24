"""The page itself: entries and sessions as data, one style sheet and one script of ours.

Its policy names the hashes of exactly those two, and forbids everything else: no address can be
loaded, no text can become markup (`require-trusted-types-for`), whatever a peer has said.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import io
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

import msgspec

from mcptest.core.safe_text import show
from mcptest.report.html.embedded import (
    PAGE_LIMIT,
    Chunks,
    as_embedded_json,
    data_element,
    page_too_large,
)
from mcptest.report.html.page_facts import Pin, Source
from mcptest.report.html.wire_rows import Latency, WireSession

SCRIPTS = (
    *("text.js", "diff.js", "data.js", "lists.js", "details.js", "results.js", "wire.js"),
    *("matrix.js", "charts.js", "overview.js", "keys.js", "start.js"),
)
FAILURES_WITHOUT_SCRIPT = 200


class Page(msgspec.Struct, frozen=True):
    """What the page shows."""

    title: str
    verdict: str
    exit_code: int
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()
    made_by: str = ""
    latencies: tuple[Latency, ...] = ()
    embedded: str = ""
    summary: str = ""
    """What happened, and how long it took, where several sources are one report."""
    ms: int = 0
    """Which of the recorded sessions the page holds, in words."""


def render(
    page: Page, sessions: Sequence[WireSession], pins: Sequence[Sequence[Pin]], wire: Chunks
) -> bytes:
    """The whole file. `wire` holds the records of the sessions."""
    whole = io.BytesIO()
    for part in _parts(page, sessions, pins, wire):
        if whole.tell() + len(part) > PAGE_LIMIT:
            raise page_too_large()
        whole.write(part)
    return whole.getvalue()


def _parts(
    page: Page, sessions: Sequence[WireSession], pins: Sequence[Sequence[Pin]], wire: Chunks
) -> Iterator[bytes]:
    style, script = _asset("report.css"), _script()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    yield b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'.encode()
    yield b'<meta name="viewport" content="width=device-width,initial-scale=1">\n'
    yield b'<meta name="referrer" content="no-referrer">\n'
    yield f"<title>{_safe(page.title)}</title>\n<style>".encode()
    yield style + b"</style>\n</head>\n<body>\n" + _asset("frame.html")
    yield from (line.encode() for line in _without_script(page))
    facts = Chunks("facts")
    index = _index(page, facts)
    yield data_element("page", as_embedded_json(index))
    yield data_element("sessions", as_embedded_json(list(map(_session, sessions, pins))))
    yield data_element("starts", as_embedded_json({"facts": facts.starts, "wire": wire.starts}))
    yield from facts.elements()
    yield from wire.elements()
    yield b"<script>" + script + b"</script>\n</body>\n</html>\n"


def _hash(content: bytes) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode("ascii")


@functools.cache
def _asset(name: str) -> bytes:
    return files("mcptest.report.html").joinpath("assets", name).read_bytes()


@functools.cache
def _script() -> bytes:
    return b'"use strict";\n(() => {\n' + b"\n".join(map(_asset, SCRIPTS)) + b"})();\n"


def _safe(text: str, limit: int = 300) -> str:
    return html.escape(show(text, limit), quote=True)


# -- the data ----------------------------------------------------------------------------------


def _index(page: Page, facts: Chunks) -> dict[str, Any]:
    """Everything but the facts, which go into chunks in the order of the entries."""
    entries, sources = [], []
    for number, source in enumerate(page.sources):
        for entry in source.entries:
            facts.add(entry.facts)
            short = msgspec.to_builtins(msgspec.structs.replace(entry, facts=()))
            entries.append({**short, "source": number})
        sources.append(msgspec.to_builtins(msgspec.structs.replace(source, entries=())))
    whole = msgspec.to_builtins(msgspec.structs.replace(page, sources=()))
    return {**whole, "sources": sources, "entries": entries}


def _session(session: WireSession, pins: Sequence[Pin]) -> dict[str, Any]:
    names = sorted(set(session.kinds))
    number_of = {name: number for number, name in enumerate(names)}
    same = ("label", "file", "form", "senders", "times", "labels", "working")
    return {
        **{name: getattr(session, name) for name in same},
        "transport": session.transport or "",
        "first": max(0, session.first),
        "kindNames": names,
        "kinds": [number_of[kind] for kind in session.kinds],
        "mates": list(session.mates.items()),
        "pins": msgspec.to_builtins(pins),
    }


# -- for a reader without the script ---------------------------------------------------------------


def _without_script(page: Page) -> Iterator[str]:
    """The verdict and the failures, as plain text."""
    yield "<noscript>\n<main>"
    yield f"<h1>{_safe(page.title)}</h1>\n<p>{_safe(page.verdict)}, exit code {page.exit_code}</p>"
    for source in page.sources:
        failed = [one for one in source.entries if one.outcome == "fail"]
        yield f"<h2>{_safe(source.file)}</h2>\n<p>{_safe(source.summary)}</p>\n<ul>"
        for entry in failed[:FAILURES_WITHOUT_SCRIPT]:
            name = f"{entry.id} {entry.name}".strip()
            yield f"<li>{_safe(name)}: {_safe(entry.brief)}</li>"
        more = len(failed) - FAILURES_WITHOUT_SCRIPT
        yield f"</ul>\n<p>and {more} more</p>" if more > 0 else "</ul>"
    yield "</main>\n</noscript>\n"
