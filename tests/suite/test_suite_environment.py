"""The caller's environment in what a server is given."""

from __future__ import annotations

import pytest

from mcptest.suite.model import ServerSpec
from mcptest.suite.templates import Expansion, reference_problem, resolve

ENVIRON = {"KEY": "s3cret", "EMPTY": "", "_X1": "x"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${KEY}", "s3cret"),
        ("$KEY", "s3cret"),
        ("a$KEY-b", "as3cret-b"),
        ("$KEYS", ""),
        ("$_X1", "x"),
        ("${UNSET}", ""),
        ("${UNSET:-default}", "default"),
        ("${UNSET:-a:b/c}", "a:b/c"),
        ("${UNSET:-}", ""),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY}", ""),
        ("${KEY:-default}", "s3cret"),
        ("$$KEY", "$KEY"),
        ("costs $5", "costs $5"),
        ("$", "$"),
        ("a$", "a$"),
        ("100%", "100%"),
    ],
)
def test_references_are_replaced(text: str, expanded: str) -> None:
    assert Expansion(ENVIRON)(text) == expanded


def test_what_was_used_and_what_was_missing_is_told() -> None:
    expand = Expansion(ENVIRON)
    expand("${KEY} ${UNSET} $_X1", "server.env.A")
    expand("${UNSET} ${UNSET2:-d} ${EMPTY}", "server.env.B")

    assert expand.used == {"KEY": "s3cret", "_X1": "x"}
    assert expand.unset == {"UNSET": "server.env.A"}


def test_a_value_is_not_expanded_again() -> None:
    assert Expansion({"A": "$B", "B": "x"})("$A") == "$B"


def test_in_a_url_only_braces_count() -> None:
    expand = Expansion(ENVIRON)

    assert expand.braced("http://${KEY}/?$filter=$KEY&x=$$") == "http://s3cret/?$filter=$KEY&x=$$"


@pytest.mark.parametrize("text", ["${KEY-x}", "${}", "${a b}", "${KEY:?}", "x ${1}"])
def test_a_reference_that_nobody_defined_is_a_problem(text: str) -> None:
    assert "is neither ${NAME} nor ${NAME:-default}" in (reference_problem(text) or "")


@pytest.mark.parametrize("text", ["$KEY", "${KEY}", "${KEY:-x}", "$", "${KEY", ""])
def test_other_texts_are_none(text: str) -> None:
    assert reference_problem(text) is None


def test_a_server_is_resolved_with_its_secrets_and_warnings() -> None:
    server = ServerSpec(
        command="$KEY",
        args=("$KEY",),
        env={"A": "${KEY}", "B": "${NOPE}"},
        url="http://h/${_X1}",
        cwd="/${_X1}",
        headers={"Authorization": "Bearer ${KEY}", "X-Fixed": "literal"},
    )

    resolved = resolve(server, ENVIRON)

    assert resolved.server == ServerSpec(
        command="$KEY",
        args=("$KEY",),
        env={"A": "s3cret", "B": ""},
        url="http://h/x",
        cwd="/x",
        headers={"Authorization": "Bearer s3cret", "X-Fixed": "literal"},
    )
    assert {"s3cret", "Bearer s3cret"} <= resolved.secrets
    assert "literal" not in resolved.secrets, "names decide"
    assert resolved.unset == {"NOPE": "server.env.B"}
