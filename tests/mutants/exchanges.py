"""`python -m tests.mutants.exchanges`: what each rule with a row saw, kept for judging offline.

Every such rule is asked of its mutant and of the healthy demo in the same place. What came is
written to `tests/rules/exchanges.json`: one exchange that violates the rule and one that conforms.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import msgspec

from mcptest.core.message import ABSENT
from mcptest.probe.compliance import rule_results
from mcptest.rules.corpus.probes import placeholders_in
from mcptest.rules.corpus.reader import corpus_of
from mcptest.rules.corpus.registry import CorpusRule, Row
from mcptest.suite.observed import SeenExchange
from tests.mutants.judged import ROOT, Case, look_at, mutant_cases

KEPT = ROOT / "tests" / "rules" / "exchanges.json"
AT_ONCE = 2


class Sighting(msgspec.Struct, frozen=True):
    """One rule, asked of the mutant and of the healthy demo."""

    rule: str
    revision: str
    way: str
    violating: Mapping[str, Any] | None
    """None where the mutant's server died of the question, so that nothing came."""
    conforming: Mapping[str, Any] | None
    known: Mapping[str, Any] = {}
    """The values of placeholders in what is expected."""


def row_of(case: Case) -> Row | None:
    corpus = corpus_of(case.revision)
    assert corpus is not None
    return corpus.rules[case.rule].row


def look_twice(case: Case) -> Sighting:
    row = row_of(case)
    assert row is not None
    healthy = msgspec.structs.replace(case, rule="")
    violating, known = _exchange_of(case, row)
    conforming, known_too = _exchange_of(healthy, row)
    return Sighting(
        case.rule, case.revision.label, case.way, violating, conforming, known or known_too
    )


def _exchange_of(case: Case, row: Row) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What came of the rule's question, and the values that its expectations need."""
    seen: list[SeenExchange] = []
    known: dict[str, Any] = {}
    usual = rule_results.Results.exchanged

    def watched(
        self: rule_results.Results,
        rule: CorpusRule,
        question: Row,
        exchange: SeenExchange,
        proof: Any,
    ) -> Any:
        seen.append(exchange)
        named = placeholders_in([dict(one.matcher) for one in row.expect])
        known.update({name: self._site.known[name] for name in named if name in self._site.known})
        return usual(self, rule, question, exchange, proof)

    rule_results.Results.exchanged = watched  # type: ignore[method-assign]  # for as long as it is asked
    try:
        look_at(case, (row.rule_id,))
    finally:
        rule_results.Results.exchanged = usual  # type: ignore[method-assign]
    return (_plain(seen[-1]) if seen else None), known


def _plain(exchange: SeenExchange) -> dict[str, Any]:
    """As JSON; what is absent is left out."""
    parts: dict[str, Any] = {
        "result": exchange.result,
        "error": exchange.error,
        "http": exchange.http,
        "notifications": list(exchange.notifications),
        "asked": list(exchange.asked),
        "transport": dict(exchange.transport),
        "steps": {name: _plain(step) for name, step in exchange.steps.items()},
        "facts": dict(exchange.facts),
    }
    always = ("result", "error")
    return {
        name: part
        for name, part in parts.items()
        if part is not ABSENT and (name in always or part not in (None, [], {}))
    }


def exchange_from(kept: Mapping[str, Any]) -> SeenExchange:
    """The other way round."""
    return SeenExchange(
        result=kept.get("result", ABSENT),
        error=kept.get("error", ABSENT),
        http=kept.get("http"),
        notifications=tuple(kept.get("notifications", ())),
        asked=tuple(kept.get("asked", ())),
        transport=kept.get("transport", {}),
        steps={name: exchange_from(step) for name, step in kept.get("steps", {}).items()},
        facts=kept.get("facts", {}),
    )


def main(words: Sequence[str]) -> int:
    """All pairs; with ids of rules these, with `--new` those that are not kept yet."""
    cases = [case for case in mutant_cases() if row_of(case) is not None]
    kept = {one["rule"]: one for one in json.loads(KEPT.read_text(encoding="utf-8"))}
    if "--new" in words:
        wanted = [case for case in cases if case.rule not in kept]
    else:
        wanted = [case for case in cases if not words or case.rule in words]
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        sightings = list(pool.map(look_twice, wanted))
    kept |= {one.rule: msgspec.to_builtins(one) for one in sightings}
    lines = [json.dumps(kept[one.rule], ensure_ascii=False) for one in cases if one.rule in kept]
    KEPT.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    lacking = [one.rule for one in sightings if one.violating is None or one.conforming is None]
    print(f"{len(sightings)} rules, {len(lacking)} without one of the two: {', '.join(lacking)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
