"""The command at the end of every generated page of a scenario runs.

That every scenario exists under its name is asked in one call; each seventh is run as the page
says. All of them are run with the same client and server by tests/conformance.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.fences import ROOT, fences_of, steps_of
from tests.docs.workshop import workshop
from tests.e2e.driving import mcptest

SCENARIOS = ROOT / "docs" / "conformance"
CLIENT = 'mcptest conformance client --command "python client.py" --scenario {}'
SERVER = "mcptest conformance server --server http://127.0.0.1:3001/mcp --scenario {}"


def names_in(folder: str, form: str) -> list[str]:
    """Each page has one command, of the one form, for the scenario that it is about."""
    names = []
    for page in sorted((SCENARIOS / folder).glob("*.md")):
        commands = [
            step.command
            for fence in fences_of(page.read_text(encoding="utf-8"))
            if fence.is_commands
            for step in steps_of(fence)
        ]
        if page.name == "README.md":
            assert commands == []
            continue
        (command,) = commands
        before, after = form.split("{}")
        name = command.removeprefix(before).removesuffix(after)
        assert command == form.format(name)
        assert name.replace("/", "-") == page.stem
        names.append(name)
    return names


@pytest.mark.parametrize(
    ("folder", "form"),
    [("client-scenarios", CLIENT), ("server-scenarios", SERVER)],
    ids=["clients", "servers"],
)
def test_the_command_of_every_scenario_runs(folder: str, form: str, tmp_path: Path) -> None:
    names = names_in(folder, form)
    assert len(names) > 40
    with workshop(SCENARIOS / "README.md", tmp_path) as shop:
        command = shop.rewritten(form.format(names[0]))
        shop.provide_for(command)
        words = shop.words_of(command)[1:]
        for chosen, more in ((names, ("--list",)), (names[::7], ())):
            others = [word for name in chosen[1:] for word in ("--scenario", name)]
            done = mcptest(*words, *others, *more, cwd=shop.folder, env=shop.environment)
            assert done.code == 0, done.said
            told = {word for line in done.out.splitlines() for word in line.split()}
            assert told >= set(chosen)


def test_rules_have_pages_without_commands() -> None:
    for page in (ROOT / "docs" / "rules").glob("*.md"):
        assert not any(fence.is_commands for fence in fences_of(page.read_text(encoding="utf-8")))
