"""Named probes, taken: their steps one after the other, and the facts that follow from them.

Nothing here judges. What could not be seen is said to be so, for the whole probe or for one fact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from mcptest.rules.corpus.probe_steps import Probe
from mcptest.run.compliance.conversation import Asked, Conversation
from mcptest.run.compliance.probe_actions import settle, take
from mcptest.run.compliance.probe_connections import set_going
from mcptest.run.compliance.probe_course import Course
from mcptest.run.compliance.probe_facts import FACTS
from mcptest.run.compliance.probe_seen import Seen, Unobserved
from mcptest.run.compliance.site import Site
from mcptest.suite.exchange_targets import Exchange, Expectation

__all__ = ["Probed", "Unobserved", "is_taken_aside", "prepare_probes", "run_probe", "take_probe"]

_STEP_OR_FACT = re.compile(r"(steps|probe)\.([a-z][a-z0-9_]*)")


class Probed(msgspec.Struct, frozen=True):
    """What a probe saw and found out."""

    exchange: Exchange
    """With the exchanges of all steps that were taken, and every fact that could be worked out."""
    evidence: tuple[Asked, ...]
    unobserved: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Facts that could not be: the reason, and what would unlock them."""

    def why_unobserved(self, expect: Sequence[Expectation]) -> Unobserved | None:
        """Why a rule with these expectations can't be judged by what was seen, if so."""
        for one in expect:
            found = _STEP_OR_FACT.match(one.target)
            if found is None:
                continue
            kind, name = found.groups()
            if kind == "probe" and name in self.unobserved:
                return Unobserved(*self.unobserved[name])
            if kind == "steps" and name not in self.exchange.steps:
                return Unobserved(f"the step {name} could not be taken")
        return None


def run_probe(probe: Probe, site: Site) -> Probed:
    """What came of a probe, which may have been under way for some time.

    Raises Unobserved when there is nothing to see, and PeerError when the server can't be reached
    any more.
    """
    aside = site.aside.get(probe.name)
    if aside is None:
        return take_probe(probe, site)
    found: Probed = aside.result()
    return found


def take_probe(probe: Probe, site: Site, home: Conversation | None = None) -> Probed:
    """Take it now: at home, where there is one, and there beside no other."""
    course = Course(probe, site, home=home)
    try:
        for step in probe.steps:
            take(course, step)
        settle(course)
    finally:
        course.close()
    facts, unobserved = _worked_out(probe, course.seen)
    steps = {name: taken.exchange for name, taken in course.taken.items()}
    exchange = Exchange(steps=steps, facts=facts)
    return Probed(exchange, tuple(course.evidence), unobserved)


def prepare_probes(probes: Sequence[Probe], site: Site, idle: Conversation | None = None) -> None:
    """Set the servers going over which these probes will be taken.

    An idle connection is one that may be ended: starting another for that takes longer.

    Those that have connections of their own are taken on the side from now on, two at a time;
    slow ones wait more than they work, and so do not count.
    """
    together = [one for one in probes if not is_taken_aside(one)]
    needed = {"rude" if one.is_rude else "polite" for one in together}
    another = any(step.options.connection == "new" for one in together for step in one.steps)
    set_going(
        site,
        [
            purpose
            for purpose in ("polite", "rude", "another")
            if purpose in needed or (purpose == "another" and another)
        ],
    )
    aside = [one for one in probes if is_taken_aside(one) and one.name not in site.aside]
    if aside:
        pool = ThreadPoolExecutor(2 + sum(one.is_slow for one in aside), "mcptest-probe")
        for one in sorted(aside, key=lambda one: not one.is_slow):
            home = idle if one.ends_connection else None
            site.aside[one.name] = pool.submit(take_probe, one, site, home)
        pool.shutdown(wait=False)


def is_taken_aside(probe: Probe) -> bool:
    """Whether it shares no connection with anyone."""
    return probe.own_connection or all(step.options.connection == "bare" for step in probe.steps)


def _worked_out(probe: Probe, seen: Seen) -> tuple[dict[str, Any], dict[str, tuple[str, str]]]:
    facts: dict[str, Any] = {}
    unobserved: dict[str, tuple[str, str]] = {}
    for name in probe.facts:
        try:
            facts[name] = FACTS[probe.name, name](seen)
        except Unobserved as nothing:
            unobserved[name] = (nothing.reason, nothing.unlocked_by)
    if unobserved and not facts:
        raise Unobserved(*next(iter(unobserved.values())))
    return facts, unobserved
