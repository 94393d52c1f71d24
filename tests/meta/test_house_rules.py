"""Rules of the house that a tool can hold: sizes, names, reasons, and what never gets in."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from tests.meta.source_tree import PACKAGE, ROOT, functions_of, imports_of, modules

LONGEST_MODULE = 800
LONGEST_FUNCTION = 60
LONG_MODULES: dict[str, str] = {}
"""Modules that may be longer, each with the reason."""
LONG_FUNCTIONS: dict[str, str] = {}
"""`module:function` that may be longer, each with the reason."""
BINARY = {".png", ".gz", ".ico", ".woff2"}


# -- the source ----------------------------------------------------------------------------


def test_every_module_says_what_it_is_for() -> None:
    silent = [module.place for module in modules() if not ast.get_docstring(module.tree)]
    assert silent == []


def test_no_module_is_too_long() -> None:
    long = {module.place: module.lines for module in modules() if module.lines > LONGEST_MODULE}
    assert {place: lines for place, lines in long.items() if place not in LONG_MODULES} == {}
    assert set(LONG_MODULES) <= set(long), "an exception that is not needed any more"


def test_no_function_is_too_long() -> None:
    long = {}
    for module in modules():
        for function in functions_of(module):
            assert function.end_lineno is not None
            lines = function.end_lineno - function.lineno + 1
            if lines > LONGEST_FUNCTION:
                long[f"{module.name}:{function.name}"] = lines
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert set(LONG_FUNCTIONS) <= set(long), "an exception that is not needed any more"


def test_names_are_of_the_domain() -> None:
    vague = re.compile(r"utils?|helpers?|managers?|misc|common|stuff")
    assert [module.place for module in modules() if vague.fullmatch(module.path.stem)] == []


def test_every_all_is_sorted() -> None:
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                names = ast.literal_eval(node.value)
                assert list(names) == sorted(names), module.place


# -- everything that is tracked ------------------------------------------------------------


@cache
def tracked() -> tuple[Path, ...]:
    """Files of the project, also those that are about to be added."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            timeout=240,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    paths = (ROOT / name.decode() for name in listed.split(b"\0") if name)
    return tuple(path for path in paths if path.is_file() and path.suffix not in BINARY)


@pytest.fixture(autouse=True)
def _tracked_files_are_known(request: pytest.FixtureRequest) -> None:
    if "tracked" in request.node.name and not tracked():
        pytest.skip("this is no clone of the repository")


def comments(path: Path) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


SILENCED = re.compile(r"# noqa|# type: ignore")
WITH_REASON = re.compile(
    r"# noqa: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*(?: - |  )\S|ignore\[[a-z, -]+\]  # \S"
)


def test_every_exception_to_a_tool_has_its_reason() -> None:
    """Beside it, or in a comment above the lines that need the same one."""
    bare = []
    for module in modules():
        explained = 0
        for line, comment in comments(module.path):
            if not SILENCED.search(comment) or WITH_REASON.search(comment) or explained == line - 1:
                explained = line
            else:
                bare.append(f"{module.place}:{line} {comment}")
    assert bare == []


def test_no_path_of_a_machine_is_in_tracked_files() -> None:
    home = re.compile(r"/(?:home|Users)/[a-z][\w-]*/")
    here = [str(place) + "/" for place in (ROOT, Path.home()) if len(place.parts) > 1]
    found = []
    for path in tracked():
        text = path.read_text(errors="replace")
        if home.search(text) or any(place in text for place in here):
            found.append(str(path.relative_to(ROOT)))
    assert found == []


def test_no_package_is_pinned_to_a_host_in_tracked_files() -> None:
    for path in tracked():
        if path.name == "package-lock.json":
            for name, entry in json.loads(path.read_text())["packages"].items():
                if entry.get("link"):
                    continue  # a workspace beside the lock
                resolved = entry.get("resolved", "https://registry.npmjs.org/")
                assert resolved.startswith("https://registry.npmjs.org/"), name
        assert path.name not in {".npmrc", "pip.conf", ".pypirc"}


def test_no_merge_leaves_its_marks_in_tracked_files() -> None:
    marks = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
    assert [path for path in tracked() if marks.search(path.read_text(errors="replace"))] == []


def test_clients_are_made_in_one_place() -> None:
    """There were five once, each with its own way to come back after a crash."""
    name = "mcptest.session.client.Client"
    made = [
        module.name
        for module in modules()
        if any(imported == name for _, imported in imports_of(module))
        for node in module.nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Client"
    ]
    assert made == ["mcptest.session.live"]


# -- the package ---------------------------------------------------------------------------


def test_the_types_are_for_everyone() -> None:
    assert files("mcptest").joinpath("py.typed").is_file()
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = config["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == [PACKAGE.relative_to(ROOT).as_posix()]
    assert "exclude" not in wheel
    assert "Typing :: Typed" in config["project"]["classifiers"]


def test_what_is_imported_is_declared() -> None:
    """A dependency that another one happens to bring would be missing one day."""
    import sys

    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = [*config["project"]["dependencies"]]
    for extra in ("property", "pytest"):
        listed += config["project"]["optional-dependencies"].get(extra, ())
    declared = {re.split(r"[<>=!~\[ ]", each)[0] for each in listed}
    module_of = {"google-re2": "re2", "PyYAML": "yaml", "jsonschema-rs": "jsonschema_rs"}
    allowed = {module_of.get(each, each) for each in declared} | {"mcptest", "_pytest"}
    outside = {
        name.split(".")[0]
        for module in modules()
        for _, name in imports_of(module)
        if name.split(".")[0] not in sys.stdlib_module_names
    }
    assert outside <= allowed
    assert {"msgspec", "h11"} & outside
