"""Values from JSON Schemas per second: hypothesis-jsonschema and mcptest, on the same schemas.

    python -m venv other && other/bin/pip install hypothesis==6.170.9 hypothesis-jsonschema==0.23.1
    python benchmarks/strategies.py --other other/bin/python [--rounds 3] [--examples 300]

hypothesis-jsonschema works only with Hypothesis up to 6.170.9, so it runs in an environment of its
own; both take turns, schema by schema. Counted is processor time for whole examples, the work of
Hypothesis included, which is the same on both sides: `nothing` is a strategy without a schema.
Every value is validated afterwards, outside of the measured time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOAL = 3.0
TEXT = {"type": "string"}
SCHEMAS: dict[str, Any] = {
    "flat": {
        "type": "object",
        "properties": {
            "path": TEXT,
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "recursive": {"type": "boolean"},
            "mode": {"enum": ["read", "write", "append"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
    "nested": {
        "type": "object",
        "properties": {
            "user": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 40},
                    "email": {"type": "string", "format": "email"},
                    "age": {"type": "integer", "minimum": 0},
                },
                "required": ["name", "email"],
            },
            "tags": {"type": "array", "items": TEXT, "maxItems": 5},
            "labels": {"type": "object", "additionalProperties": TEXT},
        },
        "required": ["user"],
    },
    "patterns": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
            "date": {"type": "string", "format": "date"},
            "share": {"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 10},
        },
        "required": ["id", "date", "share"],
    },
    "alternatives": {
        "type": "object",
        "properties": {
            "value": {"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}]},
            "shape": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "disc"}, "radius": {"type": "number"}},
                        "required": ["kind", "radius"],
                    },
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "line"}, "to": {"type": "integer"}},
                        "required": ["kind"],
                    },
                ]
            },
        },
        "required": ["value", "shape"],
    },
    "definitions": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1},
            "sort": {"$ref": "#/$defs/Sort"},
            "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}, "maxItems": 3},
        },
        "required": ["query", "filters"],
        "$defs": {
            "Sort": {"enum": ["asc", "desc"], "type": "string"},
            "Filter": {
                "type": "object",
                "properties": {"field": TEXT, "equals": {"type": ["string", "number", "null"]}},
                "required": ["field", "equals"],
                "additionalProperties": False,
            },
        },
    },
    "distinct": {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            "point": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
        },
        "required": ["ids", "point"],
    },
    "condition": {
        "type": "object",
        "properties": {"mode": {"enum": ["on", "off"]}, "level": {"type": "integer"}},
        "required": ["mode"],
        "if": {"properties": {"mode": {"const": "on"}}},
        "then": {"required": ["level"]},
    },
    "recursive $ref": {
        "type": "object",
        "properties": {"name": TEXT, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"],
    },
    "prefixItems": {
        "type": "object",
        "properties": {
            "pair": {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "minItems": 2}
        },
        "required": ["pair"],
    },
    "dependentRequired": {
        "type": "object",
        "properties": {"card": TEXT, "address": TEXT},
        "dependentRequired": {"card": ["address"]},
    },
}


def translator(name: str) -> Callable[[Any], Any]:
    if name == "mcptest":
        from mcptest.strategies import tool_arguments

        return tool_arguments
    from hypothesis_jsonschema import from_schema

    return from_schema


def measured(strategy: Any, examples: int) -> tuple[float, list[Any]]:
    from hypothesis import HealthCheck, Phase, given, settings

    values: list[Any] = []

    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(value)

    begun = time.process_time()
    collect()
    return (time.process_time() - begun) / max(1, len(values)), values


def serve(name: str, examples: int) -> None:
    """Measure one schema for each line that comes in."""
    from hypothesis import strategies as st

    warnings.simplefilter("ignore")
    translate = translator(name)
    measured(st.text() | st.integers() | st.floats(), 50)  # what is loaded on first use
    for line in sys.stdin:
        schema = json.loads(line)
        try:
            strategy = st.integers() if schema is None else translate(schema)
            spent, values = measured(strategy, examples)
            answer: dict[str, Any] = {"spent": spent, "values": values}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
            answer = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:60]}
        print(json.dumps(answer), flush=True)


class Side:
    """One library in a process of its own."""

    def __init__(self, python: str, name: str, examples: int) -> None:
        command = [python, __file__, "--serve", name, "--examples", str(examples)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, schema: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(schema) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def invalid(schema: Any, answers: list[dict[str, Any]]) -> str:
    """The share of the values that the schema does not accept."""
    from jsonschema_rs import Draft202012Validator

    validator = Draft202012Validator(True if schema is None else schema)
    values = [value for answer in answers for value in answer.get("values", ())]
    wrong = sum(not validator.is_valid(value) for value in values)
    return f"{100 * wrong / len(values):.1f} %" if wrong else "0"


def rate(answers: list[dict[str, Any]]) -> float | None:
    spent = [answer["spent"] for answer in answers if "spent" in answer]
    return 1 / statistics.median(spent) if len(spent) == len(answers) else None


def compare(other: str, rounds: int, examples: int) -> bool:
    theirs = Side(other, "hypothesis-jsonschema", examples)
    ours = Side(sys.executable, "mcptest", examples)
    reached = True
    print(f"{'':20}{'values per second':>26}{'do not fit':>24}")
    print(f"{'schema':20}{'theirs':>10}{'ours':>8}{'ratio':>8}{'theirs':>14}{'ours':>10}")
    for name, schema in {"nothing": None, **SCHEMAS}.items():
        pairs = [(theirs.measure(schema), ours.measure(schema)) for _ in range(rounds)]
        left, right = rate([pair[0] for pair in pairs]), rate([pair[1] for pair in pairs])
        assert right is not None, pairs[0][1]
        wrong = [invalid(schema, [pair[side] for pair in pairs]) for side in (0, 1)]
        told = f"{left:10.0f}" if left else f"{'fails':>10}"
        ratio = f"{right / left:8.1f}" if left else f"{'':8}"
        print(f"{name:20}{told}{right:8.0f}{ratio}{wrong[0]:>14}{wrong[1]:>10}", flush=True)
        if not left:
            print(f"  {pairs[0][0]['failed']}")
        reached &= wrong[1] == "0" and (schema is None or left is None or right / left >= GOAL)
    theirs.close()
    ours.close()
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--other", help="the interpreter that has hypothesis-jsonschema")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--serve", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.examples)
        return 0
    if not options.other or not Path(options.other).exists():
        parser.error("--other names the interpreter of the other environment, see above")
    reached = compare(options.other, options.rounds, options.examples)
    print(f"goal, {GOAL:g} times as fast and every value fits: {'met' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
