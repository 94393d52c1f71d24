"""`check_property`: a property of the protocol tried on a server, for tests in Python.

Needs Hypothesis: `pip install 'mcptest[property]'`. Nothing of it is imported until it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from mcptest.model.errors import UsageError
from mcptest.model.property import PropertyReport
from mcptest.model.revision import parse_revision
from mcptest.testing.serving import Server

if TYPE_CHECKING:
    from mcptest.run.properties.order import PropertyOrder

Named: TypeAlias = Server | str | Sequence[str]


def check_property(
    server: Named,
    *names: str,
    examples: int = 100,
    seed: int = 0,
    max_time: float = 120.0,
    timeout: float = 5.0,
    allow_tools: Sequence[str] = (),
    strict: bool = False,
    database: Path | None = None,
    may_be_skipped: bool = False,
) -> PropertyReport:
    """AssertionError, with each counterexample made small, unless the properties hold.

    Names are those of `mcptest property --list`; without any, all are tried. Where none of them has
    anything to say about the server, that is no success, unless it `may_be_skipped`. The same seed
    gives the same examples. `allow_tools` may be called beside those that say that they only read;
    `timeout` is for each request. Counterexamples are kept in `database`, and tried first the next
    time.
    """
    __tracebackhide__ = True
    need_hypothesis()
    from mcptest.run.properties.engine import run_properties

    order = replace(
        _order(Server.of(server), names),
        examples=examples,
        seed=seed,
        max_time=max_time,
        timeout=timeout,
        allow_tools=tuple(allow_tools),
        strict=strict,
        database=database,
    )
    report = run_properties(order)
    if report.failed:
        raise AssertionError("\n".join(_told(report)))
    if not report.examples and not may_be_skipped:
        raise AssertionError(f"nothing was tried: {why_not(report)}")
    return report


def assert_holds(example: Mapping[str, Any], server: Named, *, timeout: float = 5.0) -> None:
    """AssertionError as long as the server breaks its property by this counterexample.

    It is what `mcptest property --output DIR` writes, and what such a pytest file calls.
    """
    __tracebackhide__ = True
    need_hypothesis()
    from mcptest.run.properties.replaying import assert_example_holds

    named = Server.of(server)
    assert_example_holds(example, named.target, timeout=timeout, startup=named.timeout)


def why_not(report: PropertyReport) -> str:
    """Why nothing was tried."""
    return "; ".join(f"{one.name}: {one.skipped}" for one in report.properties if one.skipped)


def need_hypothesis() -> None:
    if find_spec("hypothesis") is None:
        raise UsageError(
            "properties need Hypothesis, which is not installed",
            hint="pip install 'mcptest[property]'",
        )


def _order(server: Server, names: Sequence[str]) -> PropertyOrder:
    from mcptest.run.properties.catalogue import PROPERTIES
    from mcptest.run.properties.order import PropertyOrder

    for name in names:
        if name not in PROPERTIES:
            raise UsageError(
                f"there is no property {name!r}", hint=f"there are {', '.join(PROPERTIES)}"
            )
    revision = None if server.revision in {None, "auto"} else parse_revision(str(server.revision))
    return PropertyOrder(
        target=server.target,
        revision=revision,
        properties=tuple(dict.fromkeys(names)),
        startup=server.timeout,
    )


def _told(report: PropertyReport) -> Iterator[str]:
    """As `mcptest property` says it, without what holds."""
    from mcptest.report.explored_text import heading
    from mcptest.report.property_text import counterexample_lines, summary_in_words
    from mcptest.report.terminal import Style

    style = Style(unicode=False)
    yield summary_in_words(report)
    yield heading(report)
    for found in report.failures:
        yield ""
        yield f"{found.of_property}:"
        yield from counterexample_lines(found, report, style, verbose=True)
