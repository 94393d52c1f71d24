"""What a seed draws hangs on nothing that is loaded beside it."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from mcptest.probe.properties.search import search, steady_draws

ODD = [f"constant-{number}" for number in range(400)]


def drawn(seed: int) -> list[str]:
    found: list[str] = []
    assert not search(st.text(), found.append, seed=seed, examples=200)
    return found


def test_constants_of_a_module_that_is_loaded_meanwhile_change_no_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = drawn(1)
    path = tmp_path / "odd_constants.py"
    path.write_text(f"ODD = {ODD!r}\n")
    module = types.ModuleType("odd_constants")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "odd_constants", module)
    assert drawn(1) == before
    assert not set(drawn(1)) & set(ODD)
    assert drawn(2) != before


def test_tests_of_others_have_their_constants_afterwards() -> None:
    theirs = providers._get_local_constants, providers.CONSTANTS_CACHE
    with steady_draws():
        ours = providers._get_local_constants, providers.CONSTANTS_CACHE
        assert not providers._get_local_constants().strings
    assert (providers._get_local_constants, providers.CONSTANTS_CACHE) == theirs
    assert ours[0] is not theirs[0]
    assert ours[1] is not theirs[1]
