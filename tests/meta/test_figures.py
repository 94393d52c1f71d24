"""The size of the house in figures: what it takes to find one's way.

They may only get smaller. Only what is new for users raises `FILES` or
`LINES`, a command by its three or four modules, in the commit that brings it.
"""

from __future__ import annotations

import ast
from collections import Counter

from tests.meta.source_tree import Module, modules

FILES = 355
LINES = 88_255
CLASS_NAMES_TWICE = 1
FILE_NAMES_TWICE = 3
IMPORTS_IN_FUNCTIONS = 162
SHARED_NAMES = {"cli.py", "run.py", "view.py", "__init__.py"}
"""What each command has under the same name, so that one knows where to look."""


def test_the_house_does_not_grow_in_files_or_lines() -> None:
    files, lines = len(modules()), sum(module.lines for module in modules())
    assert files <= FILES, f"{files} files: merge what is one thing; a new command raises FILES"
    assert lines <= LINES, f"{lines} lines: something can go; a new command raises LINES"


def test_a_class_name_means_one_thing() -> None:
    names = Counter(
        node.name for module in modules() for node in module.nodes if isinstance(node, ast.ClassDef)
    )
    twice = sorted(name for name, count in names.items() if count > 1)
    assert len(twice) <= CLASS_NAMES_TWICE, twice


def test_a_file_name_means_one_thing() -> None:
    names = Counter(module.path.name for module in modules())
    twice = sorted(name for name, count in names.items() if count > 1 and name not in SHARED_NAMES)
    assert len(twice) <= FILE_NAMES_TWICE, twice


def test_imports_stand_at_the_top() -> None:
    assert sum(map(imports_in_functions, modules())) <= IMPORTS_IN_FUNCTIONS


def imports_in_functions(module: Module) -> int:
    found = {
        (node.lineno, node.col_offset)
        for function in module.nodes
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(found)
