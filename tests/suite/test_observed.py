"""The text of a result, method by method."""

from __future__ import annotations

from typing import Any

import pytest

from mcptest.suite.observed import merge_pages, result_problem, text_of

PICTURE = {"type": "image", "data": "eA==", "mimeType": "image/png"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


@pytest.mark.parametrize(
    ("method", "result", "expected"),
    [
        ("tools/call", {"content": [text("a"), PICTURE, text("b")]}, "a\nb"),
        ("tools/call", {"content": [], "structuredContent": {"a": 1}}, ""),
        ("tools/call", {"content": [text(""), text("b")]}, "\nb"),
        (
            "prompts/get",
            {"description": "d", "messages": [{"content": text("hi")}, {"content": PICTURE}]},
            'd\nhi\n{"type":"image","data":"eA==","mimeType":"image/png"}',
        ),
        ("prompts/get", {"description": "", "messages": [{"content": text("hi")}]}, "hi"),
        (
            "resources/read",
            {
                "contents": [
                    {"uri": "x:y", "text": "t1"},
                    {"uri": "x:y", "blob": "AAECAwQ=", "mimeType": "application/octet-stream"},
                    {"uri": "x:y", "blob": ""},
                    {"uri": "x:y", "text": ""},
                ]
            },
            't1\n<blob mimeType="application/octet-stream" len=8>\n<blob mimeType="" len=0>\n',
        ),
        (
            "resources/list",
            {"resources": [{"uri": "x:y", "title": "<b> & é", "size": 3, "name": "n"}]},
            '{"resources":[{"uri":"x:y","title":"<b> & é","size":3,"name":"n"}]}',
        ),
        (
            "completion/complete",
            {"completion": {"values": ["a"], "total": 0, "hasMore": False}},
            '{"completion":{"values":["a"],"total":0,"hasMore":false}}',
        ),
        ("resources/subscribe", {}, "{}"),
    ],
)
def test_the_text_of_a_result(method: str, result: Any, expected: str) -> None:
    assert result_problem(method, result) is None
    assert text_of(method, result) == expected


@pytest.mark.parametrize(
    ("method", "result", "problem"),
    [
        ("prompts/list", {}, "prompts is missing"),
        ("resources/list", {"resources": {}}, "resources is not an array"),
        ("prompts/get", {}, "messages is missing"),
        ("prompts/get", {"messages": [{}]}, "content is missing"),
        ("prompts/get", {"messages": [{"content": {"type": "z"}}]}, "unsupported content type: z"),
        ("resources/read", {"contents": [{"uri": "x"}]}, "unsupported resource type"),
        ("resources/read", {"contents": [{"text": "x"}]}, "resource uri is missing"),
        ("completion/complete", {}, "completion is missing"),
        ("completion/complete", {"completion": {}}, "values is missing"),
        ("tools/call", {"content": [{}]}, "unsupported content type: null"),
        ("completion/complete", 5, "the result is not an object but number"),
    ],
)
def test_a_result_of_the_wrong_shape_is_named(method: str, result: Any, problem: str) -> None:
    assert result_problem(method, result) == problem


def test_pages_become_one_result() -> None:
    pages: list[dict[str, Any]] = [
        {"prompts": [1], "nextCursor": "p2", "_meta": {"a": 1}},
        {"prompts": [2, 3], "nextCursor": "p3"},
        {"prompts": []},
    ]
    assert merge_pages("prompts/list", pages) == {"prompts": [1, 2, 3], "_meta": {"a": 1}}
    assert merge_pages("prompts/list", pages[:2])["nextCursor"] == "p3"
    assert merge_pages("prompts/list", [{"prompts": "no"}, {"prompts": [1]}]) == {"prompts": "no"}
    assert pages[0]["prompts"] == [1]
