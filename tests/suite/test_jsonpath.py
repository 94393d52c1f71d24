"""JSONPath: RFC 9535, the plain form of mcp-assert, its messages, and bounds."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptest.suite.jsonpath import (
    PathError,
    PathSyntaxError,
    compile_path,
    lookup,
    path_problem,
    query,
)

STORE = {
    "books": [
        {"title": "A", "price": 8, "tags": ["x", "y"], "isbn": "0-1"},
        {"title": "B", "price": 12.5, "tags": []},
        {"title": "C", "price": "8", "sold": None},
    ],
    "owner": {"first name": "Ada", "foo-bar": 7, "@type": "person", "it's": 1, 'a"b': 2},
    "$schema": "q",
    "matrix": [[1, 2], [3, 4]],
    "": "empty",
    "zero": 0,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [STORE]),
        ("", [STORE]),
        ("$.", [STORE]),
        ("$.books[0].title", ["A"]),
        ("books[0].title", ["A"]),
        ("$.books[-1].title", ["C"]),
        ("$['books'][0][\"title\"]", ["A"]),
        ("$.matrix[1][0]", [3]),
        ("$.matrix[*][1]", [2, 4]),
        ("$.matrix[0,1][0]", [1, 3]),
        ("$.matrix[0][0,0]", [1, 1]),
        ("$.books[0:2].title", ["A", "B"]),
        ("$.books[::-1].title", ["C", "B", "A"]),
        ("$.books[1:].title", ["B", "C"]),
        ("$.books[::0]", []),
        ("$.books[:-2].title", ["A"]),
        ("$.owner['first name']", ["Ada"]),
        ("$.owner.first name", ["Ada"]),
        ("$.owner.foo-bar", [7]),
        ("$.owner.@type", ["person"]),
        (r"$.owner['it\'s']", [1]),
        (r'$.owner["a\"b"]', [2]),
        (r"$['\u0062ooks'][0].title", ["A"]),
        ("$schema", ["q"]),
        ("$.$schema", ["q"]),
        ("$['']", ["empty"]),
        ("$..title", ["A", "B", "C"]),
        ("$..[0]", [STORE["books"][0], "x", [1, 2], 1, 3]),  # type: ignore[index]
        ("$.books..x", []),
        ("$.owner.*", ["Ada", 7, "person", 1, 2]),
        ("$.nothing", []),
        ("$.zero.x", []),
        ("$ .books [0] .title", ["A"]),
        ("$.books[ 0 , 1 ].title", ["A", "B"]),
    ],
)
def test_a_path_leads_to(path: str, found: list[Any]) -> None:
    assert query(STORE, path) == found


@pytest.mark.parametrize(
    ("test", "titles"),
    [
        ("@.price == 8", "A"),
        ("(@.price == 8)", "A"),
        ("@.price == '8'", "C"),
        ("@.price != 8", "BC"),
        ("@.price < 10", "A"),
        ("@.price >= 8", "AB"),
        ("@.price > 8", "B"),
        ("@.price <= 8.0", "A"),
        ("@.title > 'A'", "BC"),
        ("8 == @.price", "A"),
        ("@.isbn", "A"),
        ("!@.isbn", "BC"),
        ("@.sold == null", "C"),
        ("@.sold", "C"),
        ("@.missing == @.absent", "ABC"),
        ("@.missing == null", ""),
        ("@.missing < 1", ""),
        ("@.price == 8 || @.title == 'B'", "AB"),
        ("@.price && @.isbn", "A"),
        ("!(@.price == 8 || @.sold == null)", "B"),
        ("@.title == 'A' || @.title == 'B' && @.isbn", "A"),
        ("@.tags[?@ == 'y']", "A"),
        ("@.tags == ['x']", None),
        ("length(@.tags) == 2", "A"),
        ("length(@.price) == 1", "C"),
        ("count(@.tags[*]) >= 0", "ABC"),
        ("count(@.*) == 4", "A"),
        ("value(@..tags) == 1", ""),
        ("value(@..title) == 'B'", "B"),
        ("match(@.isbn, '[0-9]-[0-9]')", "A"),
        ("match(@.isbn, '[0-9]')", ""),
        ("search(@.isbn, '[0-9]')", "A"),
        ("search(@.price, '8')", "C"),
        ("search(@.title, '(')", ""),
        ("@.price == $.books[0].price", "A"),
        ("@.tags == $.books[0].tags", "A"),
        ("true == true", "ABC"),
        ("@.price == 1.25e1", "B"),
    ],
)
def test_a_filter_keeps(test: str, titles: str | None) -> None:
    path = f"$.books[?{test}].title"
    if titles is None:
        assert path_problem(path) is not None
    else:
        assert query(STORE, path) == list(titles)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$[?@]", ["", 0, False, None, []]),
        ("$[?!@]", []),
        ("$[?count(@) == 1]", ["", 0, False, None, []]),
        ("$[?value(@) == 0]", [0]),
    ],
)
def test_that_something_is_there_does_not_depend_on_its_value(path: str, found: list[Any]) -> None:
    """Readers of others take a bare `@` for the value: `""`, `0` and `false` were not there."""
    assert query(["", 0, False, None, []], path) == found


def test_a_function_takes_a_path_with_several_selectors() -> None:
    assert query([[{"a": 1}, 7], [{"a": 1}]], "$[?value(@[?@.a, 1]) == 7]") == []
    assert query([[{"a": 1}, 7], [7]], "$[?count(@[?@.a, 1]) == 2]") == [[{"a": 1}, 7]]


def test_equality_in_filters_is_typed() -> None:
    document = [1, True, "1", 1.0, None, [1], [True], {"a": 1}, {"a": True}]
    assert query(document, "$[?@ == 1]") == [1, 1.0]
    assert [value for value in query(document, "$[?@ == true]") if value is not True] == []
    assert query({"a": document, "b": [True]}, "$.a[?@ == $.b]") == [[True]]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$.y", 'field "y" not found'),
        ("$.books[3].title", "index 3 out of range (len=3)"),
        ("$.books[-4]", "index -4 out of range (len=3)"),
        ("$.zero.x", 'expected object at "x", got number'),
        ("$.books.title", 'expected object at "title", got array'),
        ("$.books[2].sold.x", 'expected object at "x", got null'),
        ("$.owner[0]", 'expected array at "owner", got object'),
        ("$[0]", 'expected array at "$", got object'),
        ("$..title", "3 values match, expected one"),
        ("$..nothing", "no value matches, expected one"),
    ],
)
def test_a_way_that_ends_says_where(path: str, message: str) -> None:
    with pytest.raises(PathError) as raised:
        lookup(STORE, path)
    assert str(raised.value) == message


def test_lookup_gives_the_one_value_also_of_a_filter() -> None:
    assert lookup(STORE, "$.books[?@.title == 'B'].price") == 12.5
    assert lookup(STORE, "$.books[2].sold") is None
    assert lookup([[5]], "[0][0]") == 5


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ("$.a.", 4),
        ("$.a[", 4),
        ("$.a[0", 5),
        ("$.a[0abc]", 5),
        ("$.a[01]", 5),
        ("$.a[-0]", 4),
        ("$.a]", 3),
        ("$.a['x]", 7),
        (r"$.a['\x']", 6),
        (r"$['\ud800']", 9),
        ("$.a[?]", 5),
        ("$.a[?@.b = 1]", 9),
        ("$.a[?1]", 6),
        ("$.a[?@.* == 1]", 13),
        ("$.a[?count(@.b)]", 15),
        ("$.a[?length(@.*) == 1]", 15),
        ("$.a[?nope(@)]", 10),
        ("$.a[?match(@.a, 'x') == true]", 28),
        ("$.a[?@.foo-bar == 1]", 10),
        ("$.a[9007199254740992]", 20),
        ("$.'a'", 2),
        ("$..", 3),
        ("$...a", 3),
        ("$(a)", 1),
    ],
)
def test_a_bad_path_is_refused_with_its_position(path: str, position: int) -> None:
    with pytest.raises(PathSyntaxError) as raised:
        compile_path(path)
    assert raised.value.position == position
    assert path_problem(path) == str(raised.value)


def test_filters_may_not_nest_without_end() -> None:
    assert path_problem("$" + "[?@" * 10 + "]" * 10) is None
    assert "deeper" in str(path_problem("$" + "[?@" * 2000 + "]" * 2000))
    assert "deeper" in str(path_problem("$[?" + "(" * 3000 + "@" + ")" * 3000 + "]"))
    assert "longer" in str(path_problem("$." + "a" * 20_000))


def test_work_is_bounded() -> None:
    wide = [[0] * 1000 for _ in range(1000)]
    started = time.process_time()
    for path in (
        "$" + "..*" * 20,
        "$" + "[*,*,*,*]" * 100,
        "$..[?count($..*) > 1]",
        "$[*][?$ == $]",
    ):
        with pytest.raises(PathError, match="visits more than 100000 nodes"):
            query(wide, path, most_steps=100_000)
    assert time.process_time() - started < 10


def test_a_deep_document_does_not_exhaust_the_stack() -> None:
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert query(deep, "$..[?@ == 'end']") == ["end"]
    assert query([deep, deep], "$[?@ == $[0]]") == [deep, deep]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=15,
)
_WHOLE = [".a", "..b", "[0]", "[-1]", "[*]", ".*", "['c']", "[?@.a]", "[?@==1]", "[::2]"]
_TORN = ["[?(", "]", "(", "&&", "||", "!", "@", "$", "'", '"', "\\u", ",", "1e9", "==", "\x00"]
_PIECES = st.sampled_from([*_WHOLE, "[?length(@)>1]", "[?match(@,'a')]", *_TORN])


@given(_JSON, st.text(max_size=20) | st.lists(_PIECES, max_size=8).map("".join))
def test_no_input_raises_anything_but_a_path_error(document: Any, path: str) -> None:
    for whole in (path, "$" + path):
        try:
            found = query(document, whole, most_steps=10_000)
        except PathError:
            continue
        assert isinstance(found, list)
        if compile_path(whole).singular:
            assert len(found) <= 1


@given(_JSON)
def test_descendants_are_everything_once(document: Any) -> None:
    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value
        return sum(1 + count(x) for x in inner) if isinstance(value, dict | list) else 0

    assert len(query(document, "$..*")) == count(document)
