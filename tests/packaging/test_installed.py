"""From a wheel, without development tools: every kind of command finds its data and its modules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mcptest
from tests.packaging.installing import ROOT, Installed

SUITE = ROOT / "examples" / "quickstart.yaml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elsewhere")


def test_it_is_the_installed_one_and_says_its_version(place: Installed, folder: Path) -> None:
    done = place.mcptest("--version", cwd=folder)
    assert (done.code, done.out) == (0, f"mcptest {mcptest.__version__}\n")
    where = place.run(place.python, "-c", "import mcptest; print(mcptest.__file__)", cwd=folder)
    assert where.out.startswith(str(place.folder))


def test_a_suite_runs_against_the_demo_and_its_page_is_written(
    place: Installed, folder: Path
) -> None:
    words = ("--server", "demo", "--json-file", "run.json", "--sarif", "run.sarif")
    done = place.mcptest("run", str(SUITE), *words, cwd=folder)
    assert done.code == 0, done.said
    done = place.mcptest("report", "run.json", "--html", "page.html", cwd=folder)
    assert done.code == 0, done.said
    assert "</html>" in (folder / "page.html").read_text()


def test_a_server_is_judged_by_the_corpora(place: Installed, folder: Path) -> None:
    done = place.mcptest("compliance", "run", "--server", "demo", "--json", cwd=folder)
    assert done.code == 0, done.said
    (judged,) = json.loads(done.out)["judgements"]
    assert len(judged["results"]) > 100


def test_rules_scenarios_and_schemas_are_found(place: Installed, folder: Path) -> None:
    for words in (("explain", "INV-001"), ("conformance", "list"), ("schema", "run")):
        done = place.mcptest(*words, cwd=folder)
        assert (done.code, done.err) == (0, ""), done.said
        assert len(done.out) > 200


def test_what_an_extra_brings_is_asked_for_by_its_name(place: Installed, folder: Path) -> None:
    """Hypothesis is not there: no traceback, and the words that install it."""
    done = place.mcptest("property", "--server", "demo", cwd=folder)
    assert done.code == 2
    assert "mcptest[property]" in done.err
    assert "Traceback" not in done.err
