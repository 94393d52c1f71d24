"""Every object of the format, also those of the lanes: for the reference page, and for editors."""

from __future__ import annotations

from typing import Final

from mcptest.suite import lane_blocks, model, sent_message
from mcptest.suite.fields import DECLARED, Definitions, Schema
from mcptest.suite.model import BLOCKS, DEFAULTS, LANES, SINGLE, SUITE, TEST

_ORDER = (
    *("a test file", "a suite", "defaults", "a test", "server", "client_capabilities", "sampling"),
    *("setup", "assert", "assert_resources", "assert_prompts", "assert_completion"),
    *("assert_sampling", "assert_logging", "assert_notifications", "trajectory", "trace", "list"),
    *("get", "ref", "argument", "expect", "check", "assert_logging.expect"),
    *("assert_notifications.expect", "compliance", "spec_version_check", "grade_delta"),
    *("a compliance test", "a check", "http", "invariants", "properties"),
)
_MODULES = (model, sent_message, lane_blocks)
_BY_NAME = {one.name: one for one in (SINGLE, SUITE, DEFAULTS, TEST)} | {
    one.name: one
    for of, one in DECLARED.items()
    if of.__module__ in {module.__name__ for module in _MODULES}
}
ALL: Final = tuple(_BY_NAME[name] for name in _ORDER)
"""In the order in which the reference page shows them."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ONLY_LANES: Schema = {
    "anyOf": [{"required": [name]} for name in LANES],
    "not": {"anyOf": [{"required": [name]} for name in BLOCKS]},
}
"""A file that judges a server and tests nothing else."""


def suite_json_schema() -> Schema:
    """One schema for both forms of a suite file."""
    definitions: Definitions = {}
    forms = {
        "if": {"anyOf": [{"required": ["tests"]}, {"required": ["defaults"]}, _ONLY_LANES]},
        "then": SUITE.reference(definitions),
        "else": SINGLE.reference(definitions),
    }
    return {
        "$schema": _DIALECT,
        "title": "mcptest: a suite",
        "type": "object",
        **forms,
        "$defs": dict(sorted(definitions.items())),
    }
