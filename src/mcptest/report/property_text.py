"""A run of property tests for a terminal: a line for each, counterexamples as conversations."""

from __future__ import annotations

from collections.abc import Iterator

from mcptest.model.property import Counterexample, PropertyReport, PropertyResult, Way
from mcptest.model.show import show
from mcptest.report import columns
from mcptest.report.explored_text import closing_lines, heading, why_lines
from mcptest.report.terminal import Style

WORDS = {
    Way.RULE: "BROKEN",
    Way.CRASH: "CRASH",
    Way.HANG: "HANG",
    Way.RELATION: "DIFFERS",
}
_NAME = 24
_LINE = 160
"""Of a message; --verbose shows more of it."""
_ARROWS = {"client": "->", "server": "<-", "": "  "}


def property_lines(report: PropertyReport, style: Style, *, verbose: bool = False) -> Iterator[str]:
    """The whole report, line by line."""
    yield style.paint(heading(report), "bold")
    yield from why_lines(report, style)
    yield f"seed {report.seed}, about {report.wanted} examples for each property"
    yield ""
    for one in report.properties:
        yield _row(one, report, style)
        if verbose:
            yield style.paint(f"      {one.about}", "dim")
        for note in one.notes:
            yield f"      {style.warning} {show(note, 300)}"
        if one.ended_early:
            yield f"      {style.warning} {show(one.ended_early, 300)}"
        for found in one.counterexamples:
            yield from counterexample_lines(found, report, style, verbose=verbose)
    for problem in report.problems:
        yield f"  {style.cross} {show(problem, 300)}"
    yield ""
    yield from closing_lines(report, summary_in_words(report), next_steps(report), style)


def _row(one: PropertyResult, report: PropertyReport, style: Style) -> str:
    name = columns.pad(one.name, _NAME)
    if one.skipped:
        return f"  {style.dash} {name}  skipped: {show(one.skipped, 200)}"
    counted = any(report.counts(found) for found in one.counterexamples)
    sign = style.cross if counted else style.warning if one.counterexamples else style.tick
    if one.name in report.untried:  # it neither holds nor is broken, for all that was seen
        sign = style.unsure
    spent = columns.duration(one.duration_ms)
    again = f" and {one.replayed} kept" if one.replayed else ""
    found = len(one.counterexamples)
    words = f"{found} counterexample{'s' * (found != 1)}" if found else ""
    return f"  {sign} {name}  {one.examples} examples{again}  {spent:>6}  {words}".rstrip()


def counterexample_lines(
    found: Counterexample, report: PropertyReport, style: Style, *, verbose: bool = False
) -> Iterator[str]:
    margin = " " * 6
    colour = "red" if report.counts(found) else "yellow"
    word = style.paint(WORDS[found.way], colour)
    rule = f"{found.rule} " if found.rule else ""
    yield f"{margin}{word} {rule}{show(found.title, 200)} ({found.severity.value})"
    inner = margin + "  "
    yield f"{inner}{show(found.message, 400)}"
    if found.expected:
        yield style.paint(f"{inner}expected {show(found.expected, 300)}", "dim")
    for number, words in enumerate(found.words, 1):
        yield f"{inner}{number}. {show(words, 400)}"
    for line in found.lines:
        mark = style.paint(" <== here", colour) if line.at_fault else ""
        text = show(line.text, 400 if verbose else _LINE)
        yield style.paint(f"{inner}   {_ARROWS[line.sender]} {text}", "dim") + mark
    for text in found.stderr[-3:]:
        yield style.paint(f"{inner}stderr {show(text, 300)}", "dim")
    yield from (f"{inner}{style.warning} {remark}" for remark in _remarks(found))
    if found.repeat:
        yield style.paint(f"{inner}again  {show(found.repeat, 2_000)}", "dim")


def _remarks(found: Counterexample) -> Iterator[str]:
    if found.after:
        steps = f"{found.after} step{'s' * (found.after != 1)}"
        yield f"only after the first {steps}: the server keeps something between requests"
    if not found.again:
        yield "it did not happen again on a fresh server"
    if found.known:
        yield "it was found before, and is not mended"


def summary_in_words(report: PropertyReport) -> str:
    early = "interrupted; " if report.interrupted else ""
    untried = report.untried
    tried = [one for one in report.properties if not (one.skipped or one.name in untried)]
    held = sum(not any(map(report.counts, one.counterexamples)) for one in tried)
    parts = [f"{held}/{len(tried)} properties hold", f"{report.examples} examples"]
    failed = len(report.failures)
    advice = len(report.counterexamples) - failed
    if failed:
        parts.append(f"{failed} counterexample{'s' * (failed != 1)}")
    if advice:
        parts.append(f"{advice} against advice (SHOULD)")
    if untried:
        parts.append(f"{len(untried)} not tried ({', '.join(untried)})")
    if report.restarts:
        parts.append(f"{report.restarts} restart{'s' * (report.restarts != 1)}")
    return f"{early}{', '.join(parts)}, seed {report.seed}"


def next_steps(report: PropertyReport) -> list[str]:
    steps = []
    rules = sorted({one.rule for one in report.counterexamples if one.rule})
    if rules:
        steps.append(f"mcptest explain {rules[0]} says what the rule wants, and why.")
    if report.counterexamples:
        steps.append(
            "--output DIR writes each counterexample as a capture, a suite and a pytest file."
        )
    if any(one.skipped and "--allow-tool" in one.skipped for one in report.properties):
        steps.append("--allow-tool NAME lets a tool be called that does not say it only reads.")
    return steps
