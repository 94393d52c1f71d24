"""What is known of a rule stands in its declaration: nobody else names it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mcptest.rules.catalogue import all_rules
from mcptest.rules.composition import COMPOSITION_RULES
from mcptest.rules.corpus.reader import shipped_registry
from tests.meta.source_tree import Module, modules

DECLARING = {"session_rule", "server_rule", "client_rule", "composition_rule"}
"""A declaration may name other rules: those that it yields to."""
EXCUSED = {
    "mcptest.commands.explain.cli": "an example in the help",
    "mcptest.suite.lane_blocks": "an example in the description of a field",
    "mcptest.probe.properties.steps": "the one rule that judges every mutation",
}
_ID = re.compile(r"\b[A-Z]{3,8}-\d{3}\b")


def families_in(module: Module) -> set[str]:
    """`_family = partial(session_rule, …)` declares rules too, and so does a part of a family, and
    a function that returns a rule."""
    found = {"session_rule", "server_rule", "client_rule"}
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called, given = ast.unparse(node.value.func), [*map(ast.unparse, node.value.args[:1])]
            if called == "partial" and found.issuperset(given):
                found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            found |= {node.name} if ast.unparse(node.returns) == "Rule" else set()
    return found


def rules_named_in(module: Module) -> Iterator[str]:
    """Ids in texts of the code: not in docstrings, nor in what declares a rule."""
    left_out = set()
    declaring = {*DECLARING, *families_in(module)}
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in declaring:
            left_out |= {one for one in ast.walk(node) if isinstance(one, ast.Constant)}
    for node in module.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out:
            yield from _ID.findall(node.value)


def test_no_module_names_a_rule_that_it_does_not_declare() -> None:
    known = {*shipped_registry(), *COMPOSITION_RULES, *(rule.id for rule in all_rules())}
    assert len(known) > 200
    naming = {
        module.name: sorted(found)
        for module in modules()
        if (found := known & {*rules_named_in(module)})
    }
    assert {name: found for name, found in naming.items() if name not in EXCUSED} == {}
    assert sorted(EXCUSED.keys() - naming) == [], "excused, and names no rule any more"
