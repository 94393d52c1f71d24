"""What a person made of each failing verdict on a published server, and the table that tells it.

`readings.yml` is written by hand, rule by rule, with the text of the specification and the bytes in
front of one. `python -m tests.published.readings` writes the table of docs/compliance/precision.md
again from `verdicts.json`, without judging anything.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
import yaml

from tests.published.table import HERE, Published, published_servers

PAGE = HERE.parent.parent / "docs" / "compliance" / "precision.md"
HEADING = "## Published servers"
Verdict = Literal["true", "arguable", "false"]
_INTRODUCTION = """\
Servers that other people published are judged as they are: `tests/published` pins them, `make
published` installs and judges them over every transport that they have. Every failing MUST was
checked by hand against the text of the revision and the bytes; SHOULDs and MAYs by one reading for
each rule and SDK. A verdict is *true*, *arguable* (the text
can be read otherwise; the rule says so), or *false*: a defect of ours. [Findings](findings.md) show
the bytes. A server that breaks a rule over two transports counts twice.
"""


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the failing verdicts of one rule were read."""

    rule: str
    reading: Verdict
    because: str
    servers: tuple[str, ...] = ()
    """Only on these; empty: on all for which no other reading names the server."""


class Failing(msgspec.Struct, frozen=True):
    """One failing verdict."""

    server: str
    transport: str
    revision: str
    rule: str
    severity: str


class Verdicts(msgspec.Struct, frozen=True):
    """`verdicts.json`: what each configuration was judged to break, and when."""

    date: str
    configurations: Mapping[str, Mapping[str, Mapping[str, object]]]

    def failing(self) -> Iterator[Failing]:
        for name, judged in self.configurations.items():
            server, _, transport = name.rpartition(" ")
            for revision, found in judged.items():
                rules = found["failing"]
                assert isinstance(rules, dict)
                for rule, severity in rules.items():
                    yield Failing(server, transport, revision, rule, severity)


def load_verdicts(name: str = "verdicts.json") -> Verdicts:
    return msgspec.convert(json.loads((HERE / name).read_bytes()), Verdicts)


def load_readings() -> list[Reading]:
    data = yaml.safe_load((HERE / "readings.yml").read_text())
    return msgspec.convert(data, list[Reading])


def reading_of(failing: Failing, readings: list[Reading]) -> Reading | None:
    of_rule = [one for one in readings if one.rule == failing.rule]
    named = [one for one in of_rule if failing.server in one.servers]
    general = [one for one in of_rule if not one.servers]
    return next(iter([*named, *general]), None)


def published_section() -> Iterator[str]:
    """The second table of docs/compliance/precision.md."""
    verdicts, readings = load_verdicts(), load_readings()
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for one in verdicts.failing():
        reading = reading_of(one, readings)
        made = reading.reading if reading is not None else "unread"
        counts.setdefault(one.server, Counter())[one.severity, made] += 1
    total: Counter[tuple[str, str]] = sum(counts.values(), Counter())
    servers = published_servers()
    yield from (HEADING, "", *_INTRODUCTION.splitlines(), "")
    yield (
        f"**{len(servers)} servers in {len(verdicts.configurations)} configurations, "
        f"{verdicts.date}: {total.total()} failing verdicts, {_told(total)}; "
        f"of {sum(n for (s, _), n in total.items() if s == 'MUST')} failing MUSTs "
        f"{_told(total, 'MUST')}.**"
    )
    yield ""
    columns = ["server", "language", "SDK", "over"]
    columns += ["failing MUST", *_MADE, "failing SHOULD or MAY", *_MADE]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for server in servers:
        yield _row(server, counts.get(server.name, Counter()))


def _told(counts: Counter[tuple[str, str]], severity: str = "") -> str:
    return ", ".join(f"{_number(counts, made, severity)} {made}" for made in _MADE)


_MADE = ("true", "arguable", "false")


def _number(counts: Counter[tuple[str, str]], made: str, severity: str) -> int:
    return sum(n for (s, m), n in counts.items() if m == made and severity in {"", s})


def _row(server: Published, counts: Counter[tuple[str, str]]) -> str:
    cells = [f"`{server.package}`", server.language, server.sdk, ", ".join(server.ways)]
    for severities in (("MUST",), ("SHOULD", "MAY")):
        own = Counter({key: n for key, n in counts.items() if key[0] in severities})
        cells += [str(own.total()), *(str(_number(own, made, "")) for made in _MADE)]
    return f"| {' | '.join(cells)} |"


def main() -> int:
    page = PAGE.read_text(encoding="utf-8")
    head = page.partition(HEADING)[0].rstrip()
    PAGE.write_text("\n".join([head, "", *published_section()]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
