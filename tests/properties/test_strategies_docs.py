"""The examples in docs/strategies.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcptest import strategies

PAGE = Path(__file__).parents[2] / "docs" / "strategies.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_an_example_of_the_page_runs(example: str) -> None:
    names: dict[str, Any] = {}
    exec(compile(example, str(PAGE), "exec"), names)  # it is our own page
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert tests
    for test in tests:
        test()


def test_the_page_names_every_strategy() -> None:
    page = PAGE.read_text()
    assert EXAMPLES
    values = {"Crafted", "Offer", "Step"}
    assert [
        name for name in strategies.__all__ if name not in values and f"`{name}(" not in page
    ] == ["offer"]
