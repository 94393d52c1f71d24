"""What can become of a golden answer: the words that every report of snapshots is made of."""

from __future__ import annotations

import difflib
import enum
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import msgspec

from mcptest.core.message import ABSENT
from mcptest.core.results import RunReport
from mcptest.core.safe_text import UNSAFE, show
from mcptest.suite.matching import compact_json
from mcptest.suite.model import Test
from mcptest.suite.observed import Observed
from mcptest.suite.reading import Place
from mcptest.suite.regex import groups_of, pattern_problem, with_groups_replaced
from mcptest.suite.starters import FileNames

FILE_TROUBLE = "snapshot"
"""The check that fails when a golden file can't be read or written."""


class SnapshotOutcome(enum.Enum):
    """One test, or one golden file that no test is left for."""

    MATCHED = "matched"
    CHANGED = "changed"
    """The answer is another one than the golden file holds."""
    NEW = "new"
    """There is no golden file yet, so nothing was compared."""
    MISSING = "missing"
    """There is a golden file, and no test whose answer it could be."""
    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    """There was no answer, or its file could not be read or written."""
    SKIPPED = "skipped"

    @property
    def is_bad(self) -> bool:
        return self.name in {"CHANGED", "NEW", "MISSING", "FAILED"}


_NOT_COMPARED = frozenset({SnapshotOutcome.SKIPPED, SnapshotOutcome.MISSING})


class KeptSnapshot(msgspec.Struct, frozen=True):
    """What became of one snapshot, and where it is."""

    outcome: SnapshotOutcome
    golden: str = ""
    """The file, as a path that a person can open."""
    note: str = ""


class SnapshotReport(msgspec.Struct, frozen=True):
    """A run whose answers were held against golden files: `kept[i]` belongs to result `i`."""

    run: RunReport
    kept: tuple[KeptSnapshot, ...]
    update: bool = False

    def count(self, outcome: SnapshotOutcome) -> int:
        return sum(one.outcome is outcome for one in self.kept)

    @property
    def failed(self) -> bool:
        """A file without its test is no failure of an update, which never deletes anything."""
        allowed = SnapshotOutcome.MISSING if self.update else None
        return any(one.outcome.is_bad and one.outcome is not allowed for one in self.kept)

    @property
    def compared(self) -> int:
        """How many answers were held against a file, or written into one."""
        return sum(one.outcome not in _NOT_COMPARED for one in self.kept)

    @property
    def unwritten(self) -> bool:
        """Whether there was an answer that could not be put into its file."""
        pairs = zip(self.run.results, self.kept, strict=True)
        failed = (result for result, one in pairs if one.outcome is SnapshotOutcome.FAILED)
        return any(failure.check == FILE_TROUBLE for each in failed for failure in each.failures)


# -- Masks ---------------------------------------------------------------------------------------

FIXTURE = "fixture"
MASKED = "masked"
"""The placeholder of a pattern that gives its parts no names."""
VOLATILE = "volatile"
"""A line that says only this is never compared."""

Names: TypeAlias = frozenset[str]

_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d{2}:\d{2}:\d{2}"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_IS = r"[\"']?\s*[:=]\s*"
"""Between the name of a member and its value: in JSON, in a dict of Python, in `name: value`."""
_ID = r"(?:\b[Ii]d|_id|Id|ID)"
_NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_UNIT = r"(?:[NnUuµMm]?[Ss]|sec|[Mm]illis(?:econds?)?|[Ss]econds?)"

# In each pattern the one group is what is hidden; the rest only says where to look.
BUILT_IN: dict[str, tuple[str, ...]] = {
    "uuid": (r"\b([0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12})\b",),
    "timestamp": (
        rf"\b(\d{{4}}-\d{{2}}-\d{{2}}[Tt ]\d{{2}}:\d{{2}}(?::\d{{2}}(?:[.,]\d{{1,9}})?)?{_ZONE})",
        rf"\b({_DAY}, \d{{1,2}} {_MONTH} \d{{4}} {_CLOCK}(?: (?:GMT|UTC|[+-]\d{{4}}))?)",
        rf"\b({_DAY} {_MONTH} [ \d]\d \d{{4}} {_CLOCK} GMT[+-]\d{{4}}(?: \([A-Za-z ]{{1,60}}\))?)",
        rf"\b({_DAY} {_MONTH} [ \d]\d {_CLOCK}(?: [A-Z]{{3,4}})? \d{{4}})\b",
        # Seconds or milliseconds since 1970, where the name of the member says that it is a time.
        rf"(?:[Tt]ime|[Tt]ime_?[Ss]tamp|_at|At){_IS}(1\d{{9}}(?:\d{{3}})?(?:\.\d{{1,9}})?)\b",
    ),
    "id": (
        # Only what nobody can have chosen: an id such as 5 or `bob` is a part of the answer.
        rf"{_ID}{_IS}[\"']?((?:[a-z]{{1,12}}_)?(?:[0-9a-f]{{16,64}}|[0-9A-HJKMNP-TV-Z]{{26}}))\b",
        rf"{_ID}{_IS}[\"']([a-z]{{1,12}}_[0-9A-Za-z]{{14,64}})\b",
    ),
    "duration": (
        rf"\b(?:took|elapsed|(?:completed|finished|done|ready) in):? ({_NUMBER}) ?{_UNIT}\b",
        rf"(?:[Dd]uration|[Ee]lapsed|[Ll]atency|\btook)(?:_?{_UNIT})?{_IS}({_NUMBER})\b",
    ),
}


class Masks(msgspec.Struct, frozen=True):
    """Everything that is hidden in one text."""

    built_in: Names = frozenset(BUILT_IN)
    patterns: tuple[str, ...] = ()
    """Of the user. Its named groups are hidden under their names; without one, the whole match."""
    paths: tuple[str, ...] = ()
    """Where the fixture lies in this run."""

    def apply(self, text: str) -> str:
        """The text with what is hidden. An answer may be large: no more than two copies of it."""
        if text.isascii() and not (self.patterns or self.paths or self.built_in):
            return text
        data = text.encode("utf-8", "backslashreplace")
        del text
        for pattern in self.patterns:
            named = {number: f"<{name}>".encode() for name, number in groups_of(pattern).items()}
            whole_match = {0: f"<{MASKED}>".encode()}
            data = with_groups_replaced(pattern, data, named or whole_match)
        for path in _spellings(self.paths):
            data = data.replace(path, f"<{FIXTURE}>".encode())
        if self.built_in:
            pattern, placeholders = _joined(self.built_in)
            data = with_groups_replaced(pattern, data, placeholders)
        return data.decode("utf-8")

    @property
    def names(self) -> Names:
        """All words that may stand in angle brackets, also those that are not in use."""
        own = {name for pattern in self.patterns for name in groups_of(pattern)}
        return frozenset({*BUILT_IN, FIXTURE, MASKED, VOLATILE, *own})


def mask_problem(pattern: str) -> str | None:
    """Why this can't be a mask, or None."""
    if not pattern:
        return "it is empty"
    problem = pattern_problem(pattern)
    if problem is None and "\n" in pattern:
        problem = "it holds a line break: write \\n"
    return problem


def names_in(golden: str) -> Names:
    """The built-in masks that were at work when this was written: those that it shows."""
    return frozenset(_USED.findall(golden))


def protected(text: str, names: Names) -> str:
    """A text of a peer in which nothing looks like a placeholder: a backslash goes before it."""
    if "<" not in text:
        return text
    return re.sub(rf"\\*<(?:{'|'.join(map(re.escape, sorted(names)))})>", r"\\\g<0>", text)


_USED = re.compile(rf"(?<!\\)<({'|'.join(BUILT_IN)})>")


@functools.lru_cache(maxsize=64)
def _joined(names: Names) -> tuple[str, dict[int, bytes]]:
    """One pattern for all of them, so that the text is gone through once."""
    rows = [(name, pattern) for name in BUILT_IN if name in names for pattern in BUILT_IN[name]]
    placeholders = {number: f"<{name}>".encode() for number, (name, _) in enumerate(rows, 1)}
    return "|".join(f"(?:{pattern})" for _, pattern in rows), placeholders


def _spellings(paths: Iterable[str]) -> list[bytes]:
    """A path as it is, as its links lead, in JSON and in a URL; the longest first."""
    found: set[str] = set()
    for path in filter(None, paths):
        for one in (path.rstrip("/"), os.path.realpath(path).rstrip("/")):
            found |= {one, compact_json(one)[1:-1]}
            found |= {quote(one, safe=safe, errors="backslashreplace") for safe in ("/", "")}
    encoded = {form.encode("utf-8", "backslashreplace") for form in found if len(form) > 1}
    return sorted(encoded, key=len, reverse=True)


# -- Golden text against answer ------------------------------------------------------------------

_CONTEXT = 3
_ALIGNED = 300
"""Lines between the first and the last difference that are lined up; of more, blocks are shown."""
_WIDEST = 240
_BEFORE = 60
_UNCOMPARED = f"<{VOLATILE}>"

_Step: TypeAlias = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]


def is_all_volatile(golden: str) -> bool:
    """Whether the whole golden file says that there is nothing to compare."""
    return golden.strip() == _UNCOMPARED


def agree(golden: str, actual: str) -> bool:
    """Whether they are the same, but for the lines that the golden text calls volatile."""
    if golden == actual:
        return True
    if _UNCOMPARED not in golden:
        return False
    old, new = golden.split("\n"), actual.split("\n")
    return len(old) == len(new) and all(
        a in (b, _UNCOMPARED) for a, b in zip(old, new, strict=True)
    )


def with_volatile_lines(first: str, second: str) -> str:
    """A golden text for an answer that was given twice: what differs is not compared again."""
    if first == second:
        return first
    old, new = first.split("\n"), second.split("\n")
    if len(old) != len(new):
        return _UNCOMPARED + "\n"
    lines = [a if a == b else _UNCOMPARED for a, b in zip(old, new, strict=True)]
    told = [line for line in lines if line and line != _UNCOMPARED]
    return "\n".join(lines) if told else _UNCOMPARED + "\n"


def with_the_same_volatile_lines(stored: str, renewed: str) -> str:
    """The new text with the lines volatile that were so before, if there are as many lines."""
    old, new = stored.split("\n"), renewed.split("\n")
    if _UNCOMPARED not in old or len(old) != len(new):
        return renewed
    return "\n".join(a if a == _UNCOMPARED else b for a, b in zip(old, new, strict=True))


def unified(golden: str, actual: str) -> list[str]:
    """The lines of a diff, `-` golden and `+` actual, long lines cut around their difference."""
    old, new = golden.removesuffix("\n").split("\n"), actual.removesuffix("\n").split("\n")
    if len(old) == len(new):
        old = [b if a == _UNCOMPARED else a for a, b in zip(old, new, strict=True)]
    groups = _Alignment(old, new).get_grouped_opcodes(_CONTEXT)
    return [line for group in groups for line in _hunk(group, old, new)]


class _Alignment(difflib.SequenceMatcher[str]):
    """How one text becomes the other; what differs is only lined up where it is short."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.texts = old, new

    def get_opcodes(self) -> list[_Step]:
        old, new = self.texts
        before = _common(old, new)
        after = _common(old[before:][::-1], new[before:][::-1])
        a, b = old[before : len(old) - after], new[before : len(new) - after]
        steps: list[_Step] = [("replace", 0, len(a), 0, len(b))]
        if len(a) <= _ALIGNED and len(b) <= _ALIGNED:
            steps = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
        moved = [(w, before + i, before + j, before + k, before + n) for w, i, j, k, n in steps]
        moved.insert(0, ("equal", 0, before, 0, before))
        moved.append(("equal", len(old) - after, len(old), len(new) - after, len(new)))
        return moved


def _hunk(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> Iterator[str]:
    sides = []
    for begin, end in ((group[0][1], group[-1][2]), (group[0][3], group[-1][4])):
        length = end - begin
        sides.append(f"{begin + 1}" if length == 1 else f"{begin + (length > 0)},{length}")
    yield f"@@ -{sides[0]} +{sides[1]} @@"
    for what, first, last, begin, end in group:
        if what == "equal":
            yield from (f" {line[:_WIDEST]}" for line in old[first:last])
            continue
        a, b = old[first:last], new[begin:end]
        if len(a) == len(b):
            pairs = [_focused(one, other) for one, other in zip(a, b, strict=True)]
            a, b = [one for one, _ in pairs], [other for _, other in pairs]
        yield from (f"-{line[:_WIDEST]}" for line in a)
        yield from (f"+{line[:_WIDEST]}" for line in b)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters, or lines, both begin with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def _focused(old: str, new: str) -> tuple[str, str]:
    """Two long lines, from a little before the place where they part."""
    if max(len(old), len(new)) <= _WIDEST:
        return old, new
    start = _common(old, new) - _BEFORE
    return (old, new) if start <= 0 else (f"…{old[start:]}", f"…{new[start:]}")


# -- Where the golden file of a test is ----------------------------------------------------------

FOLDER = ".snapshots"
SUFFIX = ".snap"
MANY = ".snaps"
_USUAL = ".yaml"
_SUITES = (".yaml", ".yml")


class Golden(msgspec.Struct, frozen=True):
    """A golden file by the folder of its suite and its name within `.snapshots`."""

    beside: str
    name: str

    @property
    def path(self) -> str:
        return os.path.join(self.beside, FOLDER, self.name)  # noqa: PTH118 - as it was given


def golden_files(tests: Sequence[Test]) -> Mapping[Place, Golden]:
    """The file of each test. All tests of a suite file must be among them."""
    by_file: dict[str, list[Test]] = {}
    for test in tests:
        by_file.setdefault(test.place.file, []).append(test)
    found: dict[Place, Golden] = {}
    for file, of_file in by_file.items():
        beside, base = os.path.dirname(file), base_of(file)  # noqa: PTH120 - as above
        # A file that is one test. One of a list with a single entry may get company.
        if len(of_file) == 1 and of_file[0].place.column == 1:
            found[of_file[0].place] = Golden(beside, base + SUFFIX)
            continue
        names = FileNames()
        for test in of_file:
            stem = names.name_for(test.name).removesuffix(_USUAL)
            found[test.place] = Golden(beside, f"{base}{MANY}/{stem}{SUFFIX}")
    return found


def base_of(file: str) -> str:
    """`echo` of `echo.yaml`. Any other ending stays, so that no two suites are called the same."""
    name = os.path.basename(file)  # noqa: PTH119 - as above
    stem = name.removesuffix(_USUAL)
    return name if stem.lower().endswith(_SUITES) else stem


# -- An answer as the text of a golden file ------------------------------------------------------

_HEAD = "=== mcptest snapshot 1"
_OF_THE_PROTOCOL = frozenset({"_meta", "ttlMs", "cacheScope"})
_LISTS = ("content", "contents", "messages")
_BINARY = ("data", "blob")
_LONGEST_BINARY = 120
"""Longer base64 is kept as its digest: nobody can review it."""
_MARKED = re.compile(r"^\\*===", re.MULTILINE)
_UNSEEN = re.compile(rf"{UNSAFE}(?<![\t\n])")


def golden_text(observed: Observed, masks: Masks) -> str:
    """What the golden file of this answer must hold."""
    return masks.apply(protected(_unmasked(observed), masks.names))


def _unmasked(observed: Observed) -> str:
    match _substance(observed.result):
        # Where the answer is one text that can be shown as it is, the file is just that.
        case {"content": [{"type": "text", "text": str(plain), **others}], **rest}:
            is_plain = not rest and not _substance(others) and observed.error is None
            if is_plain and not _UNSEEN.search(plain) and not plain.startswith(_HEAD):
                return plain + "\n"
    return "".join(f"{one}\n" for one in _parts(observed))


def _substance(value: Any) -> Any:
    """A result or a content without what is no part of the answer."""
    if not isinstance(value, Mapping):
        return value
    kept = {name: one for name, one in value.items() if name not in _OF_THE_PROTOCOL}
    if kept.get("resultType") == "complete":
        del kept["resultType"]
    if kept.get("isError") is False:
        del kept["isError"]
    return kept


def _parts(observed: Observed) -> Iterator[str]:
    yield _HEAD
    error, result = observed.error, _substance(observed.result)
    if isinstance(error, Mapping):
        message = error.get("message")
        title = f"error {compact_json(error.get('code'))}"
        yield from _part(title, message if isinstance(message, str) else _pretty(message))
        if "data" in error:
            yield from _part("error data", _pretty(error["data"]))
    elif error is not None:
        yield from _part("error", _pretty(error))
    elif not isinstance(result, dict):
        yield from _part("result", _pretty(None if result is ABSENT else result))
    else:
        if result.pop("isError", False):
            yield "=== isError"
        for member in _LISTS:
            if isinstance(items := result.get(member), list):
                del result[member]
                for number, item in enumerate(items):
                    yield from _item(f"{member}[{number}]", item)
        for name in sorted(result):
            yield from _part(show(name, 200), _pretty(result[name]))


def _item(title: str, item: Any) -> Iterator[str]:
    """One content: its text as it is, whatever else it says in the line above."""
    item = _substance(item)
    if not isinstance(item, dict):
        yield from _part(title, _pretty(item))
        return
    inner = _substance(item.get("content"))
    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
        others = {**item, "content": {k: v for k, v in inner.items() if k != "text"}}
        yield from _part(f"{title} {_facts(others)}", inner["text"])
    elif isinstance(item.get("text"), str):
        others = {name: one for name, one in item.items() if name != "text"}
        yield from _part(f"{title} {_facts(others)}", item["text"])
    else:
        yield from _part(title, _pretty(item))


def _facts(value: Any) -> str:
    return _seen(compact_json(_digested(value), sort_keys=True), always=False)[0]


def _part(title: str, body: str) -> Iterator[str]:
    body, changed = _seen(body)
    yield f"=== {title}{' (escaped)' if changed else ''}"
    yield _MARKED.sub(r"\\\g<0>", body)


def _seen(text: str, *, always: bool = True) -> tuple[str, bool]:
    """The text with all of it visible. Where something was not, backslashes are doubled.

    In JSON (not `always`) a backslash is never part of the text, so that it can stay.
    """
    if not _UNSEEN.search(text):
        return text, False
    if always:
        text = text.replace("\\", "\\\\")
    return _UNSEEN.sub(lambda found: show(found.group(), 12), text), True


def _pretty(value: Any) -> str:
    return json.dumps(_digested(value), ensure_ascii=False, indent=2, sort_keys=True)


def _digested(value: Any) -> Any:
    """The value with long binary data as its digest."""
    if isinstance(value, list):
        return list(map(_digested, value))
    if not isinstance(value, Mapping):
        return value
    kept = {}
    for name, one in value.items():  # a comprehension would be one more call for each level
        if name in _BINARY and isinstance(one, str) and len(one) > _LONGEST_BINARY:
            digest = hashlib.sha256(one.encode("utf-8", "surrogatepass")).hexdigest()
            kept[name] = f"sha256 {digest} of {len(one)} characters"
        elif name != "_meta":
            kept[name] = _digested(one)
    return kept
