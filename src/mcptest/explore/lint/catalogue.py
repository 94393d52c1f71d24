"""Every lint rule: importing this module declares them all."""

from __future__ import annotations

from mcptest.explore.lint import (
    called,
    descriptions,
    flows,
    hidden,
    hints,
    names,
    parameters,
    prompts_and_resources,
    schemas,
    similarity,
    sizes,
)
from mcptest.explore.lint.declare import declared_rules
from mcptest.explore.lint.finding import LintRule

_DECLARING = (
    called,
    descriptions,
    flows,
    hidden,
    hints,
    names,
    parameters,
    prompts_and_resources,
    schemas,
    similarity,
    sizes,
)


def all_lint_rules() -> tuple[LintRule, ...]:
    """Those of mcp-assert first (errors, then warnings), then ours."""
    assert _DECLARING
    return tuple(
        rule for _, rule in sorted(declared_rules().items(), key=lambda pair: _rank(pair[0]))
    )


def _rank(code: str) -> tuple[int, str]:
    return ("EWL".index(code[0]), code)
