"""Every object of the format, also those of the lanes: for the reference page, not for loading."""

from __future__ import annotations

from typing import Final

from mcptest.suite import check_forms, compliance_block, invariants_block, properties_block
from mcptest.suite import declarations as d
from mcptest.suite.declared_expectations import (
    EXPECT,
    LOGGING_EXPECT,
    NOTIFICATIONS_EXPECT,
    ROW,
)
from mcptest.suite.declared_server import CLIENT_CAPABILITIES, SAMPLING_ANSWER, SERVER

ALL: Final = (
    d.SINGLE,
    d.SUITE,
    d.DEFAULTS,
    d.TEST,
    SERVER,
    CLIENT_CAPABILITIES,
    SAMPLING_ANSWER,
    d.SETUP_STEP,
    d.TOOL_BLOCK,
    d.RESOURCES_BLOCK,
    d.PROMPTS_BLOCK,
    d.COMPLETION_BLOCK,
    d.SAMPLING_BLOCK,
    d.LOGGING_BLOCK,
    d.NOTIFICATIONS_BLOCK,
    d.TRAJECTORY_CHECK,
    d.TRACE_ENTRY,
    d.PAGE,
    d.PROMPT,
    d.REFERENCE,
    d.ARGUMENT,
    EXPECT,
    ROW,
    LOGGING_EXPECT,
    NOTIFICATIONS_EXPECT,
    compliance_block.BLOCK,
    compliance_block.SPEC_VERSION_CHECK,
    compliance_block.GRADE_DELTA,
    compliance_block.TEST,
    check_forms.CHECK,
    check_forms.HTTP,
    invariants_block.BLOCK,
    properties_block.BLOCK,
)
"""In the order in which the reference page shows them."""
