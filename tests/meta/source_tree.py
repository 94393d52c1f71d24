"""The project's own source, as the meta tests read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "mcptest"
PROGRAMS = PACKAGE / "probe" / "conformance" / "client" / "drivers"
"""Data: programs that are printed for people, with imports of their own."""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    lines: int

    @cached_property
    def tree(self) -> ast.Module:
        """Parsed when a test asks, not when the tests are collected."""
        return ast.parse(self.path.read_text())

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All of the tree: walking through it takes as long as parsing."""
        return tuple(ast.walk(self.tree))

    @property
    def layer(self) -> str:
        """The package below `mcptest`, or nothing for the modules at its root."""
        parts = self.name.split(".")
        inside = len(parts) > 2 or self.path.name == "__init__.py"
        return parts[1] if len(parts) > 1 and inside else ""

    @property
    def place(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent == PROGRAMS:
            continue
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path, path.read_text().count("\n")))
    return tuple(found)


def imports_of(module: Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything imported anywhere, in functions and for types too."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.place}:{node.lineno}: relative import"
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def functions_of(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
