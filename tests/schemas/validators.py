"""Each form of a report, read as its consumers read it. AssertionError for what is not right."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import html5lib
import jsonschema_rs
from lxml import etree
from markdown_it import MarkdownIt
from tap.parser import Parser as TapParser

from mcptest.commands.schema.cli import schema_named

HERE = Path(__file__).parent
COMMAND = re.compile(r"::(error|warning|notice)(?: ([a-z]+=[^,:\r\n]*(?:,[a-z]+=[^,:\r\n]*)*))?::")
"""A workflow command; `:` and `,` in its properties are escaped."""
UNESCAPED_BAR = re.compile(r"(?<!\\)\|")
STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@cache
def validator(name: str) -> jsonschema_rs.Validator:
    """Of a schema in this folder, or of one that check-jsonschema brings."""
    place = HERE / f"{name}.json"
    if not place.exists():
        place = files("check_jsonschema.builtin_schemas") / "vendor" / f"{name}.json"
    return jsonschema_rs.validator_for(json.loads(place.read_text()), validate_formats=True)


@cache
def own_validator(name: str) -> jsonschema_rs.Validator:
    """Of a format of ours, with nothing in it that the schema does not tell of."""
    return jsonschema_rs.validator_for(closed(schema_named(name)))


def closed(schema: Any) -> Any:
    """The schema without room for other members, wherever an object has named ones."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    named = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    return {"additionalProperties": False, **inner} if named else inner


def problems(found: jsonschema_rs.Validator, value: Any) -> list[str]:
    return [f"{error.instance_path}: {error.message}"[:300] for error in found.iter_errors(value)]


def read_own(data: bytes, name: str) -> Any:
    value = json.loads(data)
    assert problems(own_validator(name), value) == []
    return value


def read_sarif(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    assert problems(validator("sarif-2.1.0"), document) == []
    assert problems(validator("sarif-github"), document) == []
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    prints = [json.dumps(one["partialFingerprints"]) for one in run["results"]]
    assert len(set(prints)) == len(prints)
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
    assert "informationUri" not in run["tool"]["driver"]  # there is no such address
    return dict(run)


def read_code_quality(data: bytes) -> list[dict[str, Any]]:
    findings = json.loads(data)
    assert problems(validator("code-quality"), findings) == []
    prints = [one["fingerprint"] for one in findings]
    assert len(set(prints)) == len(prints)
    return list(findings)


@cache
def junit_schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(HERE / "junit-10.xsd"))


def read_junit(data: bytes) -> Any:
    """As Jenkins and GitLab do; both keep one test of each class and name."""
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    schema = junit_schema()
    schema.validate(root)
    assert [str(error) for error in schema.error_log] == []
    cases = list(root.iter("testcase"))
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    for suite in root:
        inside = suite.findall("testcase")
        assert int(suite.get("tests")) == len(inside)
        assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    assert int(root.get("tests")) == len(cases)
    return root


def read_tap(data: bytes) -> list[Any]:
    """The tests; the plan holds, and every block of YAML can be read."""
    parsed = list(TapParser().parse(io.StringIO(data.decode())))
    assert parsed[0].category == "version"
    assert [line for line in parsed if line.category == "unknown"] == []
    (plan,) = (line for line in parsed if line.category == "plan")
    tests = [line for line in parsed if line.category == "test"]
    assert plan.expected_tests == len(tests)
    assert [test.number for test in tests] == list(range(1, len(tests) + 1))
    for test in tests:
        if not test.ok:
            assert isinstance(test.yaml_block, dict)
            assert test.yaml_block["message"]
    return tests


def read_markdown(data: bytes) -> list[str]:
    """The rows of its tables; nothing in it is HTML of a peer, a link or a heading too much."""
    text = data.decode()
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    assert tokens[0].type == "heading_open"
    inline = [child for token in tokens for child in token.children or ()]
    assert [one for one in inline if one.type in {"link_open", "image"}] == []
    html = [one.content for one in (*tokens, *inline) if one.type in {"html_inline", "html_block"}]
    tags = set(re.findall(r"</?([a-zA-Z]+)", " ".join(html)))
    assert tags <= {"code", "br", "details", "summary", "sub", "sup", "kbd", "b", "strong"}
    return rows_of_tables(text.splitlines(), tokens)


def rows_of_tables(lines: list[str], tokens: list[Any]) -> list[str]:
    """As they are written: a parser goes past the cells that are too many."""
    rows: list[str] = []
    columns = 0
    for token in tokens:
        if token.type == "table_open":
            columns = len(UNESCAPED_BAR.findall(lines[token.map[0]]))
        elif token.type == "tr_open":
            rows.append(lines[token.map[0]])
            assert len(UNESCAPED_BAR.findall(rows[-1])) == columns
    return rows


def read_badge(data: bytes) -> dict[str, Any]:
    badge = json.loads(data)
    assert problems(validator("shields-endpoint"), badge) == []
    assert problems(own_validator("badge"), badge) == []
    return dict(badge)


def read_html(data: bytes) -> Any:
    """A parser that forgives nothing."""
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(data.decode())
    policies = [
        meta.get("content", "")
        for meta in document.iter("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    assert "default-src 'none'" in policies[0]
    return document


def read_annotations(text: str) -> list[str]:
    """The workflow commands in what a step prints: all of ours, and whole."""
    commands = [line for line in text.splitlines() if line.lstrip().startswith(("::", "##["))]
    assert [line for line in commands if COMMAND.match(line) is None] == []
    return commands
