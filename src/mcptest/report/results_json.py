"""A run as JSON: the array that mcp-assert prints, and the whole run as a file, `mcptest.run/1`.

Text stands in JSON as it came. What could steer the terminal or the CI system that the file is
printed on is written as an escape, which every reader turns back.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from mcptest.model.errors import UsageError
from mcptest.model.results import RUN_FORMAT, RunReport, TestResult
from mcptest.model.show import show

# Go escapes the first five. C1 and bidirectional controls are legal in JSON, but not harmless.
_ESCAPED = re.compile(
    "[<>&\u2028\u2029\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]|(?<=#)#"
)
_BYTE = re.compile(r" \(byte (\d+)\)$")
_ALWAYS = ("name", "status", "duration_ms", "trial")


def mcp_assert_json(report: RunReport) -> bytes:
    """The results as mcp-assert's `--json` writes them, key for key."""
    return as_json([_as_mcp_assert(result) for result in report.results])


def _as_mcp_assert(result: TestResult) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": result.name, "status": result.status.value}
    if result.detail:
        entry["detail"] = result.detail
    entry["duration_ms"] = result.duration_ms
    if result.language:
        entry["language"] = result.language
    entry["trial"] = result.trial
    return entry


def run_json(report: RunReport) -> bytes:
    """The whole run, from which every report can be made again."""
    run = msgspec.to_builtins(report)
    run.pop("format", None)
    return as_json(
        {
            "format": RUN_FORMAT,
            "tool": report.tool,
            "started": report.started,
            "duration_ms": report.duration_ms,
            "trials": report.trials,
            "interrupted": report.interrupted,
            "summary": {
                "total": len(report.results),
                "passed": report.passed,
                "failed": report.failed,
                "skipped": report.skipped,
            },
            **run,
            "results": [_whole(result) for result in report.results],
        }
    )


def _whole(result: TestResult) -> dict[str, Any]:
    """With the members that a reader always looks for, even where they have their usual value."""
    written: dict[str, Any] = msgspec.to_builtins(result)
    return {**{name: written.get(name, getattr(result, name)) for name in _ALWAYS}, **written}


def run_json_schema() -> dict[str, Any]:
    """The JSON Schema of what `run_json` writes."""
    schema = msgspec.json.schema(RunReport)
    definitions = schema["$defs"]
    run = definitions["RunReport"]
    run["properties"]["format"] = {"const": RUN_FORMAT}
    count = {"type": "integer", "minimum": 0}
    counts = ("total", "passed", "failed", "skipped")
    run["properties"]["summary"] = {
        "type": "object",
        "properties": dict.fromkeys(counts, count),
        "required": list(counts),
    }
    run["required"] = ["format", "tool", "started", "duration_ms", "trials", "interrupted"]
    run["required"] += ["summary", "results"]
    definitions["TestResult"]["required"] = list(_ALWAYS)
    return schema


def read_run(data: bytes, source: str = "the saved run") -> RunReport:
    """What `run_json` wrote. `source` is the name of the file, for the error."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    decode(data, msgspec.Raw, source)
    if data.lstrip()[:1] == b"[":
        raise UsageError(
            f"{source} is a list of results, not a whole run",
            hint="save the run with --json-file; --json writes the short list",
        )
    format_ = decode(data, _Head, source).format
    if format_ != RUN_FORMAT:
        said = f"its format is {show(format_)}" if format_ else "it does not name its format"
        raise UsageError(
            f"{source} can't be read: {said}, not {RUN_FORMAT}",
            hint="save the run with --json-file, by a version of mcptest that is not newer",
        )
    run: RunReport = decode(data, RunReport, source)
    return run


class _Head(msgspec.Struct):
    format: str = ""


def decode(data: bytes, shape: Any, source: str) -> Any:
    """JSON of a known shape, or an error that says where in the file it is wrong."""
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"{source}: {show(str(error), 300)}") from None
    except RecursionError:
        raise UsageError(f"{source}: JSON is nested too deep") from None
    except ValueError as error:
        raise UsageError(_malformed(str(error), data, source)) from None


def _malformed(message: str, data: bytes, source: str) -> str:
    if not data.strip():
        return f"{source}: the file is empty"
    place = _BYTE.search(message)
    if place is None:
        return f"{source}: {show(message, 300)}"
    before = data[: int(place[1])]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    return f"{source}:{line}:{column}: {show(message[: place.start()], 300)}"


def as_json(value: Any) -> bytes:
    """Indented JSON in UTF-8 that is safe to print."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 can't hold
        raw = msgspec.json.encode(_visible(value))
    text = msgspec.json.format(raw, indent=2).decode("utf-8")
    return _ESCAPED.sub(_as_escape, text).encode("utf-8") + b"\n"


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_visible(key): _visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_visible(item) for item in value]
    return value


def _as_escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be")
    pairs = (units[i : i + 2] for i in range(0, len(units), 2))
    return "".join(f"\\u{int.from_bytes(pair):04x}" for pair in pairs)
