"""Every object of the format, also those of the lanes: for the reference page, and for editors."""

from __future__ import annotations

from typing import Final

from mcptest.suite import compliance_block, lane_blocks, sent_message
from mcptest.suite import model as m
from mcptest.suite.fields import DECLARED, Definitions, Schema
from mcptest.suite.model import BLOCKS, LANES, SINGLE, SUITE, each_required

ALL: Final = (
    m.SINGLE,
    m.SUITE,
    m.DEFAULTS,
    m.TEST,
    *map(
        DECLARED.__getitem__,
        (
            m.ServerSpec,
            m.ClientCapabilities,
            m.SamplingMock,
            m.SetupStep,
            m.ToolBlock,
            m.ResourcesBlock,
            m.PromptsBlock,
            m.CompletionBlock,
            m.SamplingBlock,
            m.LoggingBlock,
            m.NotificationsBlock,
            m.TrajectoryCheck,
            m.TraceEntry,
            m.ListRequest,
            m.PromptRequest,
            m.CompletionReference,
            m.CompletionArgument,
            m.Expect,
            m.TargetCheck,
            m.LoggingExpect,
            m.NotificationExpect,
        ),
    ),
    compliance_block.BLOCK,
    compliance_block.SPEC_VERSION_CHECK,
    compliance_block.GRADE_DELTA,
    compliance_block.TEST,
    sent_message.CHECK,
    sent_message.HTTP,
    lane_blocks.INVARIANTS,
    lane_blocks.PROPERTIES,
)
"""In the order in which the reference page shows them."""


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_ONLY_LANES: Schema = {
    "anyOf": each_required(*LANES),
    "not": {"anyOf": each_required(*BLOCKS)},
}
"""A file that judges a server and tests nothing else."""


def suite_json_schema() -> Schema:
    """One schema for both forms of a suite file."""
    definitions: Definitions = {}
    forms = {
        "if": {"anyOf": [*each_required("tests", "defaults"), _ONLY_LANES]},
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
