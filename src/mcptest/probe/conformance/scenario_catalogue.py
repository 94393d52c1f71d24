"""Every scenario by its name, for clients and for servers, read from their files: YAML has what is
said of a scenario and its checks, Python what acts and judges.

A file has `scenarios` with the members of `Scenario`. `references` are written as name and page,
below the address of the specification or whole; those of a scenario are for its checks that name
none. A check that is only named stands for one of the file's `checks`, or for all of one of its
`steps`. `server` are members of the server that a client meets. Members that several have alike are
YAML anchors.

What judges a check is the function of its id, `state_sent` of `state-sent` and without `sep-2549-`,
or what `judge` names: a function, or with arguments what makes one, `{contents_have: [uri, text]}`.
`script` names what acts in the same way, and `asks` the requests where that is all.
`not_offered` are scenarios of the official suite that are not here, by the reason.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import msgspec

from mcptest.core.errors import UsageError
from mcptest.core.revision import Revision
from mcptest.core.verdict import Side
from mcptest.probe.conformance.scenario import Scenario
from mcptest.rules.declaration import SPECIFICATION
from mcptest.suite.reading import did_you_mean, nearest

Obj: TypeAlias = dict[str, Any]
_HERE = Path(__file__).parent
_SERVER_SUITES = ("active", "all", "draft", "pending")
FILES: Mapping[Side, Mapping[str, tuple[str, ...]]] = {
    Side.CLIENT: {
        "client/client_scenarios.yml": ("behaviour", "input_requests", "requests"),
        "auth/auth_scenarios.yml": ("authorization_checks",),
    },
    Side.SERVER: {"server/server_scenarios.yml": ("contents", "sessions", "stateless_requests")},
}
"""With the modules beside each whose functions judge and act, or complete an entry (`completed`).
They are imported when asked for: most commands never do, and who serves one scenario to a client
needs nothing of the others."""


class ScenarioFile(msgspec.Struct):
    scenarios: tuple[Obj, ...]
    checks: tuple[Obj, ...] = ()
    steps: Mapping[str, tuple[str, ...]] = {}
    not_offered: Mapping[str, tuple[str, ...]] = {}

    def named(self, name: str) -> Iterator[Obj]:
        """The check of this name, or those of the step."""
        for one in self.steps.get(name, ()):
            yield from self.named(one)
        yield from (one for one in self.checks if one["id"] == name)


@functools.cache
def scenario_file(file: str) -> ScenarioFile:
    return msgspec.yaml.decode((_HERE / file).read_bytes(), type=ScenarioFile)


def server_members(name: str) -> Obj:
    """What the file says of the server of a scenario for clients."""
    read = scenario_file(next(iter(FILES[Side.CLIENT])))
    return next(one["server"] for one in read.scenarios if one["name"] == name)


def put_together(read: ScenarioFile, subjects: Sequence[ModuleType]) -> dict[str, Scenario[Any]]:
    """All of a file by their names, in their order, with the code of its subjects."""
    code = {name: value for subject in subjects for name, value in vars(subject).items()}
    completed: Callable[[Obj], Obj] = code.get("completed", lambda entry: entry)

    def found(named: str | Obj) -> Any:
        if isinstance(named, str):
            return code[named]
        [(name, given)] = named.items()
        return code[name](**given) if isinstance(given, dict) else code[name](*given)

    def whole(entry: Obj) -> Obj:
        known = dict(entry)
        shared = known.pop("references", {})
        checks = [
            {
                **one,
                "judge": found(one.get("judge") or judge_of(one["id"])),
                "references": _links(one.get("references") or shared),
            }
            for item in entry["checks"]
            for one in (read.named(item) if isinstance(item, str) else (item,))
        ]
        if "asks" in known:
            known["script"] = {"asks": [known.pop("asks")]}
        if "script" in known:
            known["script"] = found(known["script"])
        if "server" in known:
            known["script"] = functools.partial(known["script"], **known.pop("server"))
        return {**known, "checks": checks}

    return {
        one["name"]: msgspec.convert(completed(whole(one)), Scenario[Any]) for one in read.scenarios
    }


def judge_of(check: str) -> str:
    """The function that judges a check which names none."""
    return re.sub(r"^sep-\d+-", "", check).replace("-", "_")


def _links(references: Mapping[str, str]) -> list[Obj]:
    return [
        {"id": name, "url": page if page.startswith("https://") else f"{SPECIFICATION}/{page}"}
        for name, page in references.items()
    ]


@functools.cache
def _scenarios_of(side: Side, file: str) -> Mapping[str, Scenario[Any]]:
    package = f"{__package__}.{file.partition('/')[0]}"
    subjects = [importlib.import_module(f"{package}.{one}") for one in FILES[side][file]]
    return put_together(scenario_file(file), subjects)


@functools.cache
def scenario_table(side: Side) -> Mapping[str, Scenario[Any]]:
    """All of one side, in their order."""
    return dict(item for file in FILES[side] for item in _scenarios_of(side, file).items())


def not_offered(side: Side) -> dict[str, str]:
    """Scenarios of the official suite that are not here, with the reason."""
    read = (scenario_file(file).not_offered for file in FILES[side])
    reasons = (item for one in read for item in one.items())
    return {name: reason for reason, names in reasons for name in names}


def scenario_named(side: Side, name: str) -> Scenario[Any]:
    """The scenario of this name. UsageError names the nearest, or says why it is not offered."""
    for file in FILES[side]:
        if name in (found := _scenarios_of(side, file)):
            return found[name]
    if name in (missing := not_offered(side)):
        raise UsageError(f"cannot run the scenario {name}: {missing[name]}")
    near = nearest(name, tuple(scenario_table(side)))
    hint = f"did you mean {near}?" if near else "list them with mcptest conformance list"
    raise UsageError(f"unknown scenario {name}", hint=hint)


def suites(side: Side) -> tuple[str, ...]:
    if side is Side.SERVER:
        return _SERVER_SUITES
    return ("all", *sorted({name for one in scenario_table(side).values() for name in one.suites}))


def scenarios(
    side: Side, suite: str, revision: Revision | None = None, transport: str | None = None
) -> list[Scenario[Any]]:
    """The scenarios of a suite that exist in a revision and over a transport."""
    wanted = "active" if suite == "core" and side is Side.SERVER else suite
    if wanted not in suites(side):
        raise UsageError(f"unknown suite {suite}", hint=did_you_mean(suite, suites(side)))
    return [
        one
        for one in scenario_table(side).values()
        if (wanted == "all" or wanted in one.suites)
        and (revision is None or revision in one.revisions)
        and (transport is None or transport in one.transports)
    ]
