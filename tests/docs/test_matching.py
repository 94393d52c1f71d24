"""A sample that is not what is said is noticed, and what varies is not."""

from __future__ import annotations

import pytest

from tests.docs.fences import fences_of, steps_of
from tests.docs.matching import begins_with, is_shown, recounted

SAID = "first\n  ✓ one   12ms\n  ✓ two   1.5s  done\n\nlast\n"


@pytest.mark.parametrize(
    "shown",
    [
        ["first", "  ✓ one  7ms", "  ✓ two 2s  done", "", "last"],
        ["first", "…", "last"],
        ["…"],
        ["…", "  ✓ two  2s  done", "", "last"],
        ["first", "  ✓ … 1ms", "…"],
        ["first", "…", "  ✓ two … done", "…", "last"],
    ],
)
def test_a_sample_with_gaps_and_other_times_is_what_was_said(shown: list[str]) -> None:
    assert is_shown(shown, SAID)


@pytest.mark.parametrize(
    "shown",
    [
        ["first"],
        ["first", "last"],
        ["…", "  ✓ two  2s"],
        ["  ✓ one  7ms", "…"],
        ["first", "…", "first", "…"],
        ["first", "…", "  ✓ three 1ms", "…", "last"],
        ["first", "  ✗ one  7ms", "  ✓ two 2s  done", "", "last"],
    ],
)
def test_a_sample_that_is_something_else_is_noticed(shown: list[str]) -> None:
    assert not is_shown(shown, SAID)


def test_the_beginning_of_what_somebody_still_says_is_enough() -> None:
    assert begins_with(["first"], SAID)
    assert not begins_with(["last"], SAID)


PAGE = """
Text.

<!-- exits: 1, 0 -->
```console
$ mcptest run evals \\
    --quiet
1 failed
$ echo hello
```

<!-- not run: it installs -->
```sh
pip install x   # why
```

   ```console
   $ mcptest serve demo
   listening
   ^C
   ```

```yaml
# file: evals/a.yaml
name: x
```

    mcptest in-indented-text
"""


def test_a_page_is_read_as_it_is_meant() -> None:
    run, install, serve, file = fences_of(PAGE)
    first, second = steps_of(run)
    assert (first.command, first.line) == ("mcptest run evals --quiet", 6)
    assert (first.shown, first.code, second.code) == (("1 failed",), 1, 0)
    assert install.not_run == "it installs"
    assert [step.command for step in steps_of(install)] == ["pip install x   # why"]
    (served,) = steps_of(serve)
    assert served.is_stopped
    assert served.shown == ("listening",)
    assert file.file == "evals/a.yaml"
    assert not file.is_commands


def test_exit_codes_that_do_not_fit_the_commands_are_an_error() -> None:
    (fence,) = fences_of("<!-- exits: 1, 2 -->\n```console\n$ true\n```\n")
    with pytest.raises(ValueError, match="2 exit codes for 1 commands"):
        steps_of(fence)


COUNTED = "RES-001 holds\n2026-07-28 · 206 rules · 2ms\none\ntwo\n206 rules: 119 passed, 73.5 %\n"


@pytest.mark.parametrize(
    ("shown", "renewed"),
    [
        (
            ["RES-001 holds", "…", "205 rules: 118 passed, 72 %"],
            ["RES-001 holds", "…", "206 rules: 119 passed, 73.5 %"],
        ),
        (["…", "2026-07-28 · 205 rules · 9ms", "…"], ["…", "2026-07-28 · 206 rules · 2ms", "…"]),
        (["RES-001 …", "…", "two", "…"], ["RES-001 …", "…", "two", "…"]),
        (["RES-002 holds", "…"], None),
        (["…", "2025-07-28 · 206 rules · 2ms", "…"], None),
        (["…", "205 rules: … passed, 72 %"], None),
        (["…", "205 rules: 118 failed, 72 %"], None),
    ],
)
def test_a_sample_where_only_counts_differ_keeps_its_gaps(
    shown: list[str], renewed: list[str] | None
) -> None:
    assert recounted(shown, COUNTED) == renewed
