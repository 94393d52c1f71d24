"""`assert_conforms`: a session held against the rules, for whoever writes tests in Python."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from mcptest.core.revision import Revision, parse_revision
from mcptest.core.verdict import Outcome, Side
from mcptest.probe.compliance.rule_results import about_the_server
from mcptest.report.terminal import Style
from mcptest.report.verdicts import build_report, is_failure
from mcptest.rules.catalogue import all_rules
from mcptest.rules.judge import JudgedSession, judge
from mcptest.session.client import Client
from mcptest.testing.serving import AsyncClient, capture_of
from mcptest.transport.capture_file import open_capture

Document: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Subject: TypeAlias = str | os.PathLike[str] | Client | AsyncClient | Document


def assert_conforms(
    subject: Subject, revision: str | Revision | None = None, *, strict: bool = False
) -> tuple[JudgedSession, ...]:
    """AssertionError, with every finding and its proof, unless the session keeps to the rules.

    `subject` is the path of a capture, one that was read already (`{"exchanges": […]}`), or a
    client, whose session is judged as far as it went. Of a client only the server is judged: what
    a test sends on purpose is no fault. `revision` overrides what the session says that it speaks;
    `strict` counts a SHOULD as well. Whoever wants more than the assertion gets the verdicts.
    """
    __tracebackhide__ = True
    wanted = parse_revision(revision) if isinstance(revision, str) else revision
    if isinstance(subject, AsyncClient):
        subject = subject.client
    if isinstance(subject, Client):
        sessions = _judged_servers(subject, wanted)
    else:
        sessions = _judged(subject, wanted)
    broken = [one for one in sessions if any(is_failure(v, one, strict) for v in one.verdicts)]
    count, lines = 0, [""]
    for session in broken:  # as `mcptest compliance invariants` says it, without what is in order
        failures = tuple(one for one in session.verdicts if is_failure(one, session, strict))
        count += len(failures)
        shown = replace(session, verdicts=failures)
        lines += list(build_report([shown], (), "").lines(Style(unicode=False)))[:-1]
    if broken:
        head = f"{count} rule is broken" if count == 1 else f"{count} rules are broken"
        raise AssertionError("\n".join((head, *lines)).rstrip())
    decided = {Outcome.PASS, Outcome.FAIL}
    if not any(v.outcome in decided for one in sessions for v in one.verdicts):
        raise AssertionError("nothing was judged: the session exercised none of the rules")
    return sessions


def _judged(subject: Any, revision: Revision | None) -> tuple[JudgedSession, ...]:
    if isinstance(subject, str | os.PathLike):
        path = os.fspath(subject)
        return tuple(judge(source, all_rules(), revision) for source in open_capture(path))
    # Captures are read from files, and so is one that stands in memory.
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="mcptest-") as file:
        json.dump(subject, file)
        file.flush()
        judged = _judged(file.name, revision)
    return tuple(replace(session, file="in memory") for session in judged)


def _judged_servers(client: Client, revision: Revision | None) -> tuple[JudgedSession, ...]:
    # The client knows what was settled, also where a slow start left both eras in the capture.
    if revision is None and client.has_begun:
        revision = client.revision
    # Some rules conclude from all that a client asked for, as only a tour of ours asks.
    ours = (rule for rule in all_rules() if rule.side is not Side.CLIENT)
    rules = [rule for rule in ours if rule.conversations != "tour"]
    sessions = []
    for source in open_capture(str(capture_of(client))):
        session = judge(source, rules, revision)
        verdicts = (about_the_server(one, session.of_server[one.rule]) for one in session.verdicts)
        sessions.append(replace(session, verdicts=tuple(verdicts)))
    return tuple(sessions)
