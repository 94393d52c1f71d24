"""Scenarios from their files: YAML has what is said of a scenario and its checks, Python what acts
and judges.

A file has `scenarios` with the members of `Scenario`, `references` written as name and page, below
the address of the specification or whole. A check that is only named stands for one of the file's
`checks`, or for all of one of its `steps`. Members that several have alike are YAML anchors.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from mcptest.probe.conformance.scenario import Scenario
from mcptest.rules.declaration import SPECIFICATION

Obj: TypeAlias = dict[str, Any]
Table: TypeAlias = MutableMapping[str, Callable[..., Any]]


class ScenarioFile(msgspec.Struct):
    scenarios: tuple[Obj, ...]
    checks: tuple[Obj, ...] = ()
    steps: Mapping[str, tuple[str, ...]] = {}

    def named(self, name: str) -> Iterator[Obj]:
        """The check of this name, or those of the step."""
        for one in self.steps.get(name, ()):
            yield from self.named(one)
        yield from (one for one in self.checks if one["id"] == name)


def read_scenarios(
    file: Path,
    judges: Iterable[Table],
    scripts: Iterable[Table] = (),
    completed: Callable[[Obj], Obj] = lambda entry: entry,
) -> dict[str, Scenario[Any]]:
    """All of a file by their names, in their order.

    `judges` are by the ids of their checks, or by what a check calls its `judge`, `scripts` by the
    names of their scenarios. `completed` adds to an entry what is not written.
    """
    judge_of, script_of = ChainMap(*judges), ChainMap(*scripts)
    read = msgspec.yaml.decode(file.read_bytes(), type=ScenarioFile)

    def whole(entry: Obj) -> Obj:
        checks = [
            _linked({**one, "judge": judge_of[one.get("judge") or one["id"]]})
            for item in entry["checks"]
            for one in (read.named(item) if isinstance(item, str) else (item,))
        ]
        return _linked({"script": script_of.get(entry["name"]), **entry, "checks": checks})

    return {
        one["name"]: msgspec.convert(completed(whole(one)), Scenario[Any]) for one in read.scenarios
    }


def _linked(entry: Obj) -> Obj:
    links = [
        {"id": name, "url": page if page.startswith("https://") else f"{SPECIFICATION}/{page}"}
        for name, page in entry.get("references", {}).items()
    ]
    return {**entry, "references": links}
