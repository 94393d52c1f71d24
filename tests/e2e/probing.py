"""Probes against the demo, sound or with a fault, judged by the rules that use them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mcptest.core.judgement import RuleResult
from mcptest.core.revision import Revision
from mcptest.core.verdict import Outcome
from mcptest.probe.compliance.judging import judge_server
from mcptest.probe.compliance.site import Order, Site
from mcptest.rules.corpus.reader import corpus_of
from mcptest.transport.target import Target, Way
from tests.e2e.demo_peer import BOUND

OFFERED = ("--offer", "fixtures,tasks")
FAULTY = Path(__file__).with_name("faulty_demo.py")
SOUND = ("-m", "mcptest.servers.demo")


@contextmanager
def demo(way: Way, words: Sequence[str], folder: Path, token: str = "") -> Iterator[Target]:
    """The demo as a target; over HTTP it is started here, and ended."""
    command = (sys.executable, *words)
    if way == "stdio":
        yield Target(way="stdio", label="demo", command=command)
        return
    port_file = folder / "port"
    more = ("--transport", "http", "--port-file", str(port_file))
    with subprocess.Popen([*command, *more], stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            process.stderr.readline()  # it says so when it listens
            port = int(port_file.read_text())
            path = "mcp" if way == "http" else "sse"
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            yield Target(
                way=way, label="demo", url=f"http://127.0.0.1:{port}/{path}", headers=headers
            )
        finally:
            process.terminate()
            process.wait(BOUND)


@contextmanager
def site_of(target: Target, revision: Revision) -> Iterator[Site]:
    """A server that was met, and of which no more is known than that it lives."""
    site = Site(Order(target=target, revision=revision, timeout=BOUND))
    try:
        site.meet()
        site.known = {"alive_method": site.alive_check.method}
        yield site
    finally:
        site.close()


def rules_with_probes(revision: Revision, probe: str = "") -> dict[str, str]:
    """The rules that are judged by a probe, or by this one, with its name."""
    corpus = corpus_of(revision)
    assert corpus is not None
    named = {
        rule.id: rule.row.check.probe for rule in corpus.rules.values() if rule.row is not None
    }
    return {rule: name for rule, name in named.items() if name and probe in ("", name)}


def judged(
    target: Target, revision: Revision, probe: str = "", patience: float = 2.0
) -> dict[str, RuleResult]:
    """What became of every rule that is judged by a probe, and applies."""
    order = Order(
        target=target,
        revision=revision,
        rules=tuple(rules_with_probes(revision, probe)),
        patience=patience,
        timeout=BOUND,
    )
    results = judge_server(order, lambda event: None).results
    return {one.id: one for one in results if one.outcome is not Outcome.NOT_APPLICABLE}
