"""The server of a suite as something that can be judged: variables and the fixture filled in."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from mcptest.model.errors import UsageError
from mcptest.model.revision import Revision, parse_revision
from mcptest.run.choosing import ServerChoice, resolved_server, target_for
from mcptest.suite.model import ServerSpec
from mcptest.suite.templates import fill_server, variables_of
from mcptest.transport.target import Target

_NO_SERVER = ServerSpec()


@dataclass(frozen=True, slots=True)
class SuiteServer:
    target: Target
    revision: Revision | None
    """What the suite or the command line says; None: find out."""


def server_of_suite(spec: ServerSpec | None, choice: ServerChoice, fixture: str) -> SuiteServer:
    """UsageError when it can't be understood, or needs a fixture that nobody gave."""
    spec = spec or _NO_SERVER
    if not fixture and _uses_fixture(spec):
        raise UsageError(
            "the server needs {{fixture}}, which has no value here",
            hint="mcptest run --config FILE --fixture DIR gives it one",
        )
    resolved = resolved_server(spec, choice)
    filled = fill_server(resolved.server, variables_of(fixture, {}))
    target = target_for(filled, choice, fixture)
    # What came from the environment is secret, whether it is in a header or not.
    target = replace(target, referenced=(*target.referenced, *sorted(resolved.secrets)))
    asked = choice.spec_version or filled.spec_version
    revision = None if asked == "auto" else parse_revision(asked)
    return SuiteServer(target, revision)


def _uses_fixture(spec: ServerSpec) -> bool:
    texts = (*spec.args, *spec.env.values(), spec.cwd or "")
    return any("{{fixture}}" in text for text in texts)
