"""The argument of a tool that travels as a header, and is a whole number."""

from __future__ import annotations

from typing import Any

from mcptest.rules.corpus.placeholders import PLACEHOLDERS
from mcptest.run.compliance.probe_course import Course
from mcptest.run.compliance.probe_seen import Unobserved
from mcptest.wire.param_headers import PARAM_PREFIX, header_annotations

THE_NUMBER = 42


def with_integer_header(course: Course) -> None:
    """Have the tool called with 42, in an argument whose header may say 42.0 just as well."""
    unlocked_by = PLACEHOLDERS["header_tool"].unlocked_by
    tool = course.site.known.get("header_tool")
    if tool is None:
        raise Unobserved("no tool has an argument that travels as a header", unlocked_by)
    for path, header, kind in header_annotations(course.site.header_schemas.get(str(tool))):
        if path and isinstance(header, str) and kind == "integer":
            arguments = course.site.known.get("header_arguments")
            course.learned["header_name"] = PARAM_PREFIX + header
            course.learned["header_arguments"] = _with_value(arguments, path, THE_NUMBER)
            return
    raise Unobserved(
        "no argument that travels as a header is an integer",
        f"{unlocked_by}, with an integer argument",
    )


def _with_value(arguments: Any, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The arguments with one value put in, at any depth."""
    changed = dict(arguments) if isinstance(arguments, dict) else {}
    inner = changed
    for name in path[:-1]:
        below = inner.get(name)
        inner[name] = dict(below) if isinstance(below, dict) else {}
        inner = inner[name]
    inner[path[-1]] = value
    return changed
