"""Inputs of a tool: plausible ones, which its own schema accepts, for whoever calls it; and almost
valid ones, wrong in one named way or at an edge of what the schema accepts. Pure."""

from __future__ import annotations

import copy
import enum
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import zip_longest
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import msgspec

from mcptest.core.limits import cancellation
from mcptest.core.message import ABSENT, json_type
from mcptest.core.safe_text import show
from mcptest.schema.combinations import (
    EFFORT,
    Effort,
    TooLarge,
    count,
    definitions_of,
    finite,
    types_of,
    ways_of,
)
from mcptest.schema.cost import References, listed, mapping_of
from mcptest.schema.generator import fitting_value
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.wire.json_text import mark_of, spelled


class Category(enum.Enum):
    """Where an input comes from."""

    STRUCTURAL = "structural"
    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"
    CROSS_PROPERTY = "cross-property"
    MUTATION = "mutation"
    GIVEN = "given"
    """Written by whoever started the run."""


class InputCase(msgspec.Struct, frozen=True):
    """One input. `valid` is what validation said, not what was meant.

    None: there is no schema, or nobody has asked yet; `judged_again` does.
    """

    category: Category
    label: str
    arguments: Any
    """ABSENT: the member is left out. Anything but an object makes the request malformed."""
    valid: bool | None = None
    misfit: str = ""
    """Why the schema does not accept it, and where."""
    member: str = ""
    """The one member in which it differs from a valid input; empty when it is not just one."""


def params_of(tool: str, arguments: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool}
    if arguments is not ABSENT:
        params["arguments"] = arguments
    return params


def can_be_sent(arguments: Mapping[str, Any]) -> bool:
    """Whether a message can hold it: a schema's own bounds may lead to numbers that none can."""
    try:
        text = msgspec.json.encode(arguments)
    except UnicodeEncodeError:
        return True  # half a surrogate pair is sent escaped
    except (OverflowError, TypeError, RecursionError):
        return False
    # Infinity would be sent as null, which is not what a label says.
    return b":null" not in text or bool(msgspec.json.decode(text) == arguments)


# -- The values that slip past a schema or trip a handler, by the type that they stand in for ----

Named: TypeAlias = tuple[str, Any]

TRAVERSAL: Final = "../../../../../../../../etc/passwd"
TRAVERSAL_FOR_WRITERS: Final = "../../../../../../../../mcptest-no-such-folder/escape"
"""Leads out as well, to where nothing can be destroyed."""
SHELL: Final = "; echo mcptest-$((6*7)) #"
SHELL_RAN: Final = "mcptest-42"
"""What the answer holds when a shell has read it. It does no harm."""
SQL: Final = "' OR '1'='1' --"
LONG: Final = "A" * 10_240
NULL: Final[Named] = ("null value", None)

STRINGS: Final[tuple[Named, ...]] = (
    ("empty string", ""),
    ("whitespace only", " \t  "),
    ("very long string (10KB)", LONG),
    ("null bytes", "before\0after"),
    ("unicode edge case", "\u202e\ufeff\u200be\u0301\ufb00\U0010ffff"),
    ("emoji", "\U0001f469\u200d\U0001f4bb \U0001f1e9\U0001f1f0 \U0001f44d\U0001f3fd"),
    ("newlines", "one\r\ntwo\n\nthree\u2028four\r"),
    ("path traversal", TRAVERSAL),
    ("shell injection", SHELL),
    ("SQL injection", SQL),
    NULL,
)
NUMBERS: Final[tuple[Named, ...]] = (
    ("zero", 0),
    ("negative", -1),
    ("MAX_INT", 2**63 - 1),
    ("MIN_INT", -(2**63)),
    ("float precision", 0.1 + 0.2),
    ("negative zero", -0.0),
    ("beyond 2^53", 2**53 + 1),
    ("largest double", 1.7976931348623157e308),
    ("smallest double", 5e-324),
    NULL,
)
BOOLEANS: Final[tuple[Named, ...]] = (
    NULL,
    ("0", 0),
    ("1", 1),
    ('"true"', "true"),
    ('"false"', "false"),
)
EXAMPLES: Final[Mapping[str, Any]] = {
    "string": "12345",
    "integer": 12345,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}
"""A plain value of each type, to be sent where another is wanted."""


def arrays(item: Any) -> tuple[Named, ...]:
    """`item` is a valid one."""
    return (
        ("empty array", []),
        NULL,
        ("1000 elements", [item] * 1_000),
        ("mixed types", [1, "two", True, None, {}, []]),
        ("nested arrays", [[[[[[]]]]]]),
    )


_DEEP: Final = reduce(lambda inner, _: {"level": inner}, range(19), dict[str, Any]())
OBJECTS: Final[tuple[Named, ...]] = (
    ("empty object", {}),
    NULL,
    ("20 levels deep", _DEEP),
    ("100 keys", {f"key{number}": number for number in range(100)}),
)


# -- Values one step beyond what the schema of a member allows, each named by what it breaks -----

_LONGEST: Final = 100_000
"""A text or array that would have to be longer is not made."""
_BOUNDS: Final = (
    ("minimum", "beyond", -1),
    ("maximum", "beyond", 1),
    ("exclusiveMinimum", "at", 0),
    ("exclusiveMaximum", "at", 0),
)
_STRANGE_TEXTS: Final = ("\x7f", "~", "0", "mcptest", "\n", " ", "zz zz", "")


def beyond(plain: Mapping[str, Any], valid: Any) -> Iterator[Named]:
    """What would break one keyword. Whoever asks validates: a schema may say things twice."""
    if isinstance(valid, str):
        yield from _texts(plain, valid)
    elif isinstance(valid, int | float) and not isinstance(valid, bool):
        yield from _numbers(plain, valid)
    elif isinstance(valid, list):
        yield from _lists(plain, valid)
    elif isinstance(valid, dict):
        yield from _tables(plain, valid)
    if "enum" in plain or "const" in plain:
        yield "not one of the allowed values", _other_than(valid)


def _other_than(valid: Any) -> Any:
    if isinstance(valid, str):
        return f"{valid}x"
    if isinstance(valid, int | float) and not isinstance(valid, bool):
        return valid + 987_654
    return [valid]


def _texts(plain: Mapping[str, Any], valid: str) -> Iterator[Named]:
    least, most = count(plain.get("minLength"), 0), count(plain.get("maxLength"), _LONGEST)
    if 0 < least < _LONGEST:
        yield "one character too short", (valid or "x").ljust(least, "x")[: least - 1]
    if most < _LONGEST:
        yield "one character too long", (valid or "x").ljust(most + 1, "x")[: most + 1]
    if "pattern" in plain:
        for text in (*_STRANGE_TEXTS, f"{valid}\n", f"\x7f{valid}"):
            yield "a string that the pattern does not match", text
    if "format" in plain:
        yield "a string that the format does not match", f"\x7fno {plain['format']}"


def _numbers(plain: Mapping[str, Any], valid: int | float) -> Iterator[Named]:
    for keyword, where, step in _BOUNDS:
        edge = finite(plain.get(keyword))
        if edge is not None:
            yield f"{where} the {keyword}", edge + step
    grid = finite(plain.get("multipleOf"))
    if grid:
        yield "not a multiple of multipleOf", valid + grid / 2
    if isinstance(valid, int) and abs(valid) < 2**50:
        yield "with a fraction", math.floor(valid) + 0.5


def _lists(plain: Mapping[str, Any], valid: list[Any]) -> Iterator[Named]:
    least, most = count(plain.get("minItems"), 0), count(plain.get("maxItems"), _LONGEST)
    if 0 < least <= len(valid):
        yield "one item too few", valid[: least - 1]
    item = valid[0] if valid else "item"
    if most < 1_000:
        yield "one item too many", [*valid, *([item] * (most + 1 - len(valid)))]
    if plain.get("uniqueItems") is True:
        yield "the same item twice", [*valid, item] if valid else [item, item]


def _tables(plain: Mapping[str, Any], valid: dict[str, Any]) -> Iterator[Named]:
    for name in listed(plain, "required"):
        if isinstance(name, str) and name in valid:
            rest = {key: value for key, value in valid.items() if key != name}
            yield f"without {name}", rest
    if plain.get("additionalProperties") is False:
        yield "with an unknown property", {**valid, "mcptest_unknown": 1}


# -- What a tool's schema says of the members of its arguments, as far as it can be told ---------

_MOST_MEMBERS: Final = 200


class Member(msgspec.Struct, frozen=True):
    """One property."""

    name: str
    kinds: tuple[str, ...]
    """The types that its schema speaks of; text when it speaks of none."""
    plain: Mapping[str, Any]
    """Its schema with references and alternatives settled the plainest way."""
    required: bool = False


class Form(msgspec.Struct, frozen=True):
    """The arguments of a tool."""

    schema: Any
    compiled: CompiledSchema | None
    """None: it can't be used, and nothing can be said of any input."""
    base: Mapping[str, Any] | None
    """The plainest valid input; None when none was found."""
    members: tuple[Member, ...] = ()
    unusable: str = ""
    """Why nothing can be said of any input."""
    unchecked: bool = False
    """Whether that is because it costs too much to say it."""

    def misfit(self, arguments: Any) -> str | None:
        """Why the schema does not accept it; None when it does. Raises SchemaLimitError when it
        costs too much to say."""
        if self.compiled is None:
            return None
        found = self.compiled.misfit({} if arguments is ABSENT else arguments)
        return None if found is None else str(found)


def form_of(tool: Mapping[str, Any]) -> Form:
    schema = tool.get("inputSchema")
    try:
        compiled = CompiledSchema(schema)
    except SchemaLimitError as error:
        return Form(schema, None, None, unusable=str(error), unchecked=True)
    except SchemaError as error:
        return Form(schema, None, None, tuple(_members(schema)), str(error))
    value = fitting_value(schema)
    base = value if isinstance(value, dict) else None
    return Form(schema, compiled, base, tuple(_members(schema)))


def _members(schema: Any) -> Iterator[Member]:
    effort, references = Effort(), References(schema)
    root = _ways(schema, references, effort)[0]
    properties = mapping_of(root, "properties")
    required = [one for one in listed(root, "required") if isinstance(one, str)]
    for name in [*dict.fromkeys((*properties, *required))][:_MOST_MEMBERS]:
        ways = _ways(properties.get(name, {}), references, effort)
        spoken_of = dict.fromkeys(kind for plain in ways for kind in _kinds(plain))
        kinds = tuple(one for one in spoken_of if one in _OF_KIND) or ("string",)
        yield Member(name, kinds, ways[0], name in required)


def _ways(part: Any, references: References, effort: Effort) -> list[Mapping[str, Any]]:
    """The part without references and alternatives, in every way; the plainest first."""
    try:
        return [way.plain for way in ways_of(part, references, effort)] or [{}]
    except (RecursionError, TooLarge):
        return [{}]


def _kinds(plain: Mapping[str, Any]) -> Iterator[str]:
    """The types that a schema speaks of."""
    yield from types_of(plain.get("type"))
    yield from map(json_type, listed(plain, "enum"))
    if "const" in plain:
        yield json_type(plain["const"])


# -- Inputs that are almost valid ----------------------------------------------------------------

UNKNOWN: Final = "mcptest_unknown"
_OF_KIND: Final = {
    "integer": Category.NUMBER,
    **{kind: Category(kind) for kind in ("string", "number", "boolean", "array", "object")},
}


def near_valid_cases(form: Form, *, writes: bool = False) -> Iterator[InputCase]:
    """All of them in a fixed order: structure first, then one of each member in turn.

    `writes`: the tool may change things, so nothing leads it to a file that exists.
    """
    kind, base = Category.STRUCTURAL, dict(form.base or {})
    if form.base is not None:
        yield judged(form, kind, "valid input", base)
    yield judged(form, kind, "empty object", {})
    yield judged(form, kind, "null args", None)
    yield judged(form, kind, "no args", ABSENT)
    yield judged(form, kind, "unknown member", {**base, UNKNOWN: "?"}, UNKNOWN)
    for name in (member.name for member in form.members if member.required):
        rest = {key: value for key, value in base.items() if key != name}
        case = judged(form, Category.CROSS_PROPERTY, f"missing required: {name}", rest, name)
        if case.valid is False:
            yield case
    rows = [list(_of_member(form, member, writes)) for member in form.members]
    for turn in zip_longest(*rows):
        yield from (case for case in turn if case is not None)


def judged(
    form: Form, category: Category, label: str, arguments: Any, member: str = ""
) -> InputCase:
    """The case with what validation says of it."""
    valid: bool | None = None
    try:
        misfit = form.misfit(arguments) or ""
        if form.compiled is not None:
            valid = not misfit
    except SchemaLimitError:
        misfit = ""
    return InputCase(category, label, arguments, valid, misfit, member)


def judged_again(form: Form, case: InputCase) -> InputCase:
    return judged(form, case.category, case.label, case.arguments, case.member)


def _of_member(form: Form, member: Member, writes: bool) -> Iterator[InputCase]:
    base, name = dict(form.base or {}), member.name
    seen: set[str] = set()
    for kind, value in EXAMPLES.items():
        if kind in member.kinds or (kind == "integer" and "number" in member.kinds):
            continue
        label = f"wrong type for {name} (sent {kind})"
        case = judged(form, Category.STRUCTURAL, label, {**base, name: value}, name)
        if form.base is not None and case.valid is False:
            seen.add(repr(value))
            yield case
            break  # one is what it takes to see whether types are looked at
    for kind in member.kinds:
        for label, value in _values(form, member, kind, writes):
            if repr(value) not in seen:  # typed, as JSON is: 1 is not true, and -0.0 is not 0
                seen.add(repr(value))
                made = {**base, name: value}
                yield judged(form, _OF_KIND[kind], f"{name}: {label}", made, name)
    yield from _beyond(form, member, base, seen)


def _beyond(
    form: Form, member: Member, base: dict[str, Any], seen: set[str]
) -> Iterator[InputCase]:
    if form.base is None:
        return  # nothing could be proven
    name = member.name
    valid = base[name] if name in base else _made(form, member.plain)
    found: set[str] = set()
    for label, value in beyond(member.plain, valid):
        if label in found or repr(value) in seen:
            continue
        kind = _OF_KIND.get(member.kinds[0], Category.STRING)
        case = judged(form, kind, f"{name}: {label}", {**base, name: value}, name)
        if case.valid is False:
            found.add(label)
            seen.add(repr(value))
            yield case


_VALUES: Final = {"integer": NUMBERS, "number": NUMBERS, "boolean": BOOLEANS, "object": OBJECTS}


def _values(form: Form, member: Member, kind: str, writes: bool) -> tuple[Named, ...]:
    if kind == "string":
        away = TRAVERSAL_FOR_WRITERS
        return tuple(
            (label, away if writes and value == TRAVERSAL else value) for label, value in STRINGS
        )
    if kind != "array":
        return _VALUES[kind]
    item = _made(form, member.plain.get("items", {}))
    return arrays("item" if item is ABSENT else item)


def _made(form: Form, part: Any) -> Any:
    """A value for a part of the schema, which may refer to definitions of the whole."""
    if not isinstance(part, dict):
        return ABSENT
    around = definitions_of(form.schema) if isinstance(form.schema, dict) else {}
    return fitting_value({**part, **around})


# -- Inputs that are plausible -------------------------------------------------------------------

_PLACE = re.compile(r"path|file|dir|folder|root", re.IGNORECASE)
_FOLDER = re.compile(r"dir|folder|root|tree|list|search|find|glob", re.IGNORECASE)
_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_OPERATORS = "+#./;?&"
_LONGEST_VALUE = 200
NO_STRUCTURED_CONTENT = "it declares an outputSchema but returns no structuredContent"
_INTERNALS = re.compile(
    r"internal error|traceback \(most recent|stack trace|panic:|nullpointerexception"
    r"|segmentation fault",
    re.IGNORECASE,
)


class PlausibleInput(msgspec.Struct, frozen=True):
    """The arguments of a call; `doubt` says why they may be none that the tool takes."""

    arguments: Mapping[str, Any]
    doubt: str = ""
    unchecked: str = ""
    """Why nobody can say what the schema accepts, though it may be valid."""


def unchecked_schemas(tools: Iterable[Any]) -> Iterator[str]:
    """The tools for which no input can be made because their schemas can't be checked, and why."""
    for tool in tools:
        if isinstance(tool, dict) and tool.get("inputSchema") is not None:
            try:
                CompiledSchema(tool["inputSchema"])
            except SchemaLimitError as error:
                name = show(str(tool.get("name")), 80)
                yield f"{name}: its inputSchema can't be checked: {error}"
            except SchemaError:
                pass  # no input can be made, for another reason


class FixturePaths(msgspec.Struct, frozen=True):
    """What a fixture holds that a path may lead to."""

    folder: str
    file: str = ""


def input_for(tool: Mapping[str, Any], ground: FixturePaths | None = None) -> PlausibleInput:
    """The plainest input that the tool's own schema accepts; {} where it has none."""
    schema = tool.get("inputSchema")
    if schema is None:
        return PlausibleInput({}, "it has no inputSchema")
    try:
        compiled = CompiledSchema(schema)
    except SchemaLimitError as error:
        return PlausibleInput({}, unchecked=f"its inputSchema can't be checked: {error}")
    except SchemaError as error:
        return PlausibleInput({}, f"its inputSchema is not usable: {error}")
    value = fitting_value(schema)
    if not isinstance(value, dict):
        reason = (
            "no input found that its inputSchema accepts" if value is ABSENT else "not an object"
        )
        return PlausibleInput({}, reason)
    if ground is not None:
        placed = _on_ground(value, schema, str(tool.get("name")), ground)
        value = placed if compiled.fits(placed) else value
    return PlausibleInput(value)


def _on_ground(
    value: Mapping[str, Any], schema: Mapping[str, Any], tool: str, ground: FixturePaths
) -> dict[str, Any]:
    """Where a member is a place and nothing is said of it but its name: a place of the fixture."""
    known = mapping_of(schema, "properties")
    made = dict(value)
    for name, given in value.items():
        if not _PLACE.search(name):
            continue
        plain = ground.folder if _FOLDER.search(f"{tool} {name}") else ground.file or ground.folder
        part = known.get(name)
        items = part.get("items") if isinstance(part, dict) else None
        if given == name:
            made[name] = plain
        elif given == [] and isinstance(items, dict) and items.get("type") == "string":
            made[name] = [plain]
    return made


def prompt_arguments(prompt: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the arguments that a prompt requires."""
    return tuple(
        one["name"]
        for one in listed(prompt, "arguments")
        if isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and one.get("required") is True
    )


def template_variables(template: str) -> tuple[str, ...]:
    """The names that a URI template asks for, in their order."""
    names: dict[str, None] = {}
    for expression in _EXPRESSION.findall(template):
        names.update(dict.fromkeys(filter(None, _names_in(expression))))
    return tuple(names)


def _names_in(expression: str) -> list[str]:
    parts = expression.lstrip(_OPERATORS).split(",")
    return [part.partition(":")[0].removesuffix("*").strip() for part in parts]


def expanded(template: str, values: Mapping[str, str]) -> str:
    """The template with plain values in their places. Enough of RFC 6570 for one value each."""

    def fill(match: re.Match[str]) -> str:
        body = match.group(1)
        operator = body[0] if body[:1] and body[0] in _OPERATORS else ""
        names = _names_in(body)
        keep = "/:?#[]@!$&'()*+,;=" if operator in ("+", "#") else ""
        parts = [quote(values.get(name, name)[:_LONGEST_VALUE], safe=keep) for name in names]
        if operator in ("?", "&", ";"):
            parts = [f"{name}={part}" for name, part in zip(names, parts, strict=True)]
        first = {"": "", "+": "", "&": "&", "?": "?"}.get(operator, operator)
        between = {"?": "&", "&": "&", "": ",", "+": ",", "#": ","}.get(operator, operator)
        return first + between.join(parts)

    return _EXPRESSION.sub(fill, template)


def looks_internal(text: str) -> bool:
    """Whether a failure that a tool reports shows the insides of the server."""
    return _INTERNALS.search(text) is not None


def structured_misfit(tool: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """How a result breaks the tool's own output schema; empty when it does not."""
    schema = tool.get("outputSchema")
    if schema is None or result.get("isError") is True:
        return ""
    try:
        compiled = CompiledSchema(schema)
        if "structuredContent" not in result:
            return NO_STRUCTURED_CONTENT
        misfit = compiled.misfit(result["structuredContent"])
    except SchemaLimitError as error:
        return f"its structuredContent can't be checked against its outputSchema: {error}"
    except SchemaError as error:
        return f"its outputSchema is not usable: {error}"
    if misfit is None:
        return ""
    return f"its structuredContent does not match its outputSchema: {misfit}"


# -- The plainest input, for commands that call many tools ---------------------------------------

_FREE: Final = 500
_TOGETHER: Final = 20 * EFFORT
_MOST_KNOWN: Final = 2_000


class PlausibleArguments:
    """Values for what a schema requires; none when nothing that fits was found.

    They are remembered, since a command needs those of one tool several times. Schemas that take
    more than a few steps share what is spent on all: hundreds of them would add up to minutes.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, dict[str, Any]] = {}
        self._left = _TOGETHER

    def __call__(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        key = mark_of(spelled(schema))
        if key not in self._known:
            made = self._made(schema)
            if cancellation.is_over():  # it was given up for want of time
                return made
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = made
        return copy.deepcopy(self._known[key])

    def _made(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        effort = Effort(min(EFFORT, _FREE + max(0, self._left)))
        value = fitting_value(schema, effort=effort)
        self._left -= max(0, effort.spent - _FREE)
        return value if isinstance(value, dict) else {}


plausible_arguments: Final = PlausibleArguments()
