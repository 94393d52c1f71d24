"""A page that is not true is noticed: another output, another exit code, another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.fences import ROOT
from tests.docs.playing import differences
from tests.docs.recipe import recipe_of
from tests.docs.workshop import Workshop, workshop

WRONG = """
```console
$ mcptest --version
mcptest 99
$ false
```

<!-- exits: 1 -->
```console
$ echo right
right
```

```console
$ printf 'made\\n' > made.txt
```

```text
# file: made.txt
shown
```
"""
RIGHT = """
```text
# file: greeting.txt
Hello!
```

```console
$ cat greeting.txt
Hello!
$ false
$ echo $?
1
$ mcptest explain INV-003 --no-color | head -1
INV-003  …
```

```console
$ mcptest serve demo --transport http --port 8123
listening on http://127.0.0.1:8123/mcp
^C
```
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    with workshop(ROOT / "docs" / "guide.md", tmp_path) as opened:
        yield opened


def test_what_is_not_true_is_told_with_its_line(shop: Workshop) -> None:
    told = [(each.line, each.what) for each in differences(WRONG, shop)]
    assert told == [
        (3, "'mcptest --version' says something else"),
        (5, "'false' ends with 1, not 0 (<!-- exits: 1 --> says so)"),
        (10, "'echo right' ends with 0, not 1 (<!-- exits: 0 --> says so)"),
        (19, "made.txt is another"),
    ]


def test_what_is_true_is_not_told(shop: Workshop) -> None:
    assert differences(RIGHT, shop) == []


def test_what_a_command_names_is_there_and_nothing_else(shop: Workshop) -> None:
    shop.provide_for("mcptest init evals --server demo")
    assert not (shop.folder / "evals").exists()
    shop.provide_for("mcptest run evals/ --fixture evals/fixtures")
    assert (shop.folder / "evals" / "fixtures" / "hello.txt").exists()
    assert not (shop.folder / "client.py").exists()


def test_the_recipe_of_the_demo_is_that_of_the_makefile() -> None:
    recipe = recipe_of("demo", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert all(line.startswith("mcptest ") for line in recipe)
    assert len(recipe) == 2
    with pytest.raises(LookupError):
        recipe_of("no-such-target", "demo:\n\ttrue\n")
