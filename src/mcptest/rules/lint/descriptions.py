"""Names and descriptions of tools: whether a model can tell when to use them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

from mcptest.core.safe_text import some_of
from mcptest.rules.lint.finding import LintLimits, LintSeverity, LintSuggestion, Remark, lint_rule
from mcptest.rules.lint.surface import WORDS, Item, Surface, object_of, words_of

_SHORT_WORD = 10
_MANY_ACTIONS = 3


def described_tool(tool: Item) -> LintSuggestion:
    """A sentence from the tool's name, and what it takes."""
    verb, *others = tool.words or ["does"]
    ending = "es" if verb.endswith(("s", "sh", "ch", "x", "z")) else "s"
    verb, rest = (verb + ending).capitalize(), " ".join(others) or "…"
    needed = [one.name for one in tool.parameters if one.required][:5]
    by = f" for the given {', '.join(needed)}" if needed else ""
    sentence = f"{verb} {rest}{by}. Returns …. Use it when …"
    return LintSuggestion("/description", sentence)


@lint_rule("E101", "tool without description", LintSeverity.ERROR, "tool")
def no_description(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model decides by the description whether to call a tool.

    Say what the tool does, what it returns, and when to use it.
    """
    if not tool.description:
        yield Remark("has no description", "description", described_tool(tool))


@lint_rule("W101", "vague description", LintSeverity.WARNING, "tool")
def vague_description(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A phrase that fits every tool does not tell this one from the others.

    Name what the tool works on and what it returns.
    """
    text = tool.description.lower()
    one_short_word = 0 < len(text) < _SHORT_WORD and " " not in text
    if text in WORDS.vague or one_short_word:
        message = f'the description "{tool.description}" fits any tool'
        yield Remark(message, "description", described_tool(tool))


@lint_rule("W111", "description too short or too long", LintSeverity.WARNING, "tool")
def description_length(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A short description does not say when to use the tool. A long one costs context in every
    request and is a note.

    Keep it between --min-description and --max-description characters.
    """
    length = len(tool.description)
    if 0 < length < limits.min_description:
        message = f"the description has only {length} characters (minimum {limits.min_description})"
        yield Remark(message, "description", described_tool(tool))
    elif length > limits.max_description:
        message = f"the description has {length} characters (maximum {limits.max_description})"
        yield Remark(message, "description", severity=LintSeverity.NOTE)


@lint_rule("W116", "description does not say what the tool returns", LintSeverity.NOTE, "tool")
def unknown_result(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model plans its next step by what this tool returns. An outputSchema says it too.

    Add a sentence that begins with "Returns", or declare an outputSchema.
    """
    text = tool.description.lower()
    declared = object_of(tool.fields, "outputSchema")
    if text and not declared and not any(word in text for word in WORDS.returning):
        added = LintSuggestion("/description", _with_sentence(tool.description, "Returns …"))
        yield Remark("the description does not say what the tool returns", "description", added)


@lint_rule("W108", "undocumented side effect", LintSeverity.WARNING, "tool")
def hidden_side_effect(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model that mistakes a writing tool for a reading one calls it again when in doubt. It is a
    note unless the name says that something is destroyed.

    Say what the tool creates, changes or deletes, and whether a second call does harm.
    """
    verb = next((word for word in tool.words if word in WORDS.mutating), "")
    if not verb or not tool.description or tool.hint("readOnlyHint") is True:
        return  # L213 reports a hint that contradicts the name
    text = tool.description.lower()
    # `Delete the entity` names the side effect as much as `deletes` does.
    if any(sign in text for sign in WORDS.acknowledging) or WORDS.mutating & {*words_of(text)}:
        return
    added = LintSuggestion("/description", _with_sentence(tool.description, "This changes …"))
    message = f'the name says "{verb}", but the description names no side effect'
    harm = None if verb in WORDS.destroying else LintSeverity.NOTE
    yield Remark(message, "description", added, severity=harm)


def _with_sentence(text: str, sentence: str) -> str:
    return f"{text} {sentence}" if text.endswith((".", "!", "?", ":")) else f"{text}. {sentence}"


@lint_rule("W110", "description does not mention the parameters", LintSeverity.NOTE, "tool")
def drifted_description(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A description that mentions few of the parameters was often written for another version.

    Say in the description what the parameters are for.
    """
    total = len(tool.parameters)
    if total < 2 or not tool.description:
        return
    text = tool.description.lower()
    mentioned = sum(_mentions(text, one.name.lower()) for one in tool.parameters)
    if mentioned * 2 < total:
        missing = [one.name for one in tool.parameters if not _mentions(text, one.name.lower())]
        names = ", ".join(missing[:5])
        message = f"the description mentions {mentioned} of {total} parameters; missing: {names}"
        yield Remark(message, "description")


def _mentions(text: str, name: str) -> bool:
    return name in text or any(len(word) > 2 and word in text for word in name.split("_"))


@lint_rule("L201", "tool that does too much", LintSeverity.NOTE, "tool")
def overloaded_tool(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A model calls a tool that has many jobs with the arguments for the wrong job.

    Split it into one tool per job.
    """
    text = f" {tool.description.lower()} "
    endings = ("", "s", "ing")
    found = [verb for verb in WORDS.actions if any(f" {verb}{end} " in text for end in endings)]
    if len(found) > _MANY_ACTIONS:
        message = f"the description names {len(found)} actions: {', '.join(found)}"
        yield Remark(message, "description")


# -- Text that is not for the reader -------------------------------------------------------------

# Zero width joiners have their place within emoji and some scripts: alone they are not counted.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SIGNS = (
    *("ignore", "disregard", "forget", "user", "<", "system prompt", "before ", "always"),
    *("other tool", ".ssh", "id_rsa", ".aws/", "/etc/passwd"),
)
"""Each order below has one of these in it."""
_GAP = r"(?:\W{1,5}\w{1,20}){0,4}?\W{1,5}"
"""A few words. Words and what is between them can't be taken for each other: this stays linear."""
_ORDERS = re.compile(
    rf"\b(?:ignore|disregard|forget){_GAP}(?:previous|prior|above|earlier|all|other|any){_GAP}"
    r"(?:instruction|prompt|rule|message|tool)"
    r"|\b(?:do not|don't|never|without)\W{1,5}(?:ever\W{1,5})?(?:tell|mention|inform|notify|alert)"
    rf"(?:ing)?{_GAP}?\bthe user\b(?!')"
    r"|<\s{0,3}/?\s{0,3}(?:important|system|secret|instructions?|hidden)\s{0,3}>"
    rf"|\b(?:reveal|print|repeat|leak|send|include){_GAP}system prompt\b"
    rf"|\bbefore (?:using|calling) (?:this|any|other){_GAP}(?:read|open|send){_GAP}"
    r"(?:files?|contents?|keys?|conversation|history)\b"
    r"|\byou (?:must|should) always (?:call|use|prefer|choose|run) this\b"
    r"|\b(?:instead of|rather than|over) (?:any|all) other tools?\b"
    r"|~/\.ssh|\bid_rsa\b|\.aws/credentials|/etc/passwd",
    re.IGNORECASE,
)


@lint_rule("L215", "invisible characters", LintSeverity.ERROR, "surface")
def invisible_characters(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A model reads them, but a reviewer does not see them. Attackers hide instructions this way.

    Remove the characters.
    """
    for one in surface.texts:
        plain = one.text.isascii() and one.text.isprintable()
        if found := (None if plain else _INVISIBLE.search(one.text)):
            message = f"{one.field} contains U+{ord(found.group()):04X} at position {found.start()}"
            yield Remark(message, one.field, item=one.item, kind=one.kind)


@lint_rule("L216", "instructions to the model in a text", LintSeverity.ERROR, "surface")
def orders_to_the_model(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A description says what a tool does. Text that tells a model what else to do is an attack.

    Describe the tool, and leave instructions to the client.
    """
    for one in surface.texts:
        small = one.text.lower()  # a sign is cheaper to look for than an order
        found = _ORDERS.search(one.text) if any(sign in small for sign in _SIGNS) else None
        if found:
            message = f'{one.field} instructs the model: "{found.group()[:80]}"'
            yield Remark(message, one.field, item=one.item, kind=one.kind)


# -- Annotations of tools ------------------------------------------------------------------------

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SURELY_WRITING = (WORDS.mutating | WORDS.also_mutating) - {"add", "execute", "set"}
"""`add` may be arithmetic, and what is executed may be a query."""


@lint_rule("L212", "contradictory annotations", LintSeverity.ERROR, "tool")
def contradictory_hints(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Clients decide by these hints whether to ask the user.

    Set each hint to true or false, and never set both readOnlyHint and destructiveHint to true.
    """
    if tool.hint("readOnlyHint") is True and tool.hint("destructiveHint") is True:
        dropped = LintSuggestion("/annotations/destructiveHint", value=False)
        yield Remark("is marked read-only and destructive", "annotations", dropped)
    for hint in _HINTS:
        value = tool.hint(hint)
        if value is not None and not isinstance(value, bool):
            yield Remark(f"{hint} is not true or false", f"annotations.{hint}")


@lint_rule("L213", "annotations that contradict the name", LintSeverity.ERROR, "tool")
def belied_hints(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A client runs a read-only tool without asking, but the name says that the tool changes or
    destroys something.

    Correct the hint or the name.
    """
    verb = tool.words[0] if tool.words else ""
    if tool.hint("readOnlyHint") is True and verb in _SURELY_WRITING:
        corrected = LintSuggestion("/annotations/readOnlyHint", value=False)
        message = f'the name says "{verb}", but readOnlyHint is true'
        yield Remark(message, "annotations.readOnlyHint", corrected)
    elif tool.hint("destructiveHint") is False and verb in WORDS.destroying:
        corrected = LintSuggestion("/annotations/destructiveHint", value=True)
        message = f'the name says "{verb}", but destructiveHint is false'
        yield Remark(message, "annotations.destructiveHint", corrected)


@lint_rule("L214", "writing tool without annotations", LintSeverity.WARNING, "tool")
def missing_hints(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Without hints, a client can only guess whether the tool is destructive.

    Set readOnlyHint and destructiveHint.
    """
    verb = tool.words[0] if tool.words else ""
    silent = tool.hint("readOnlyHint") is None and tool.hint("destructiveHint") is None
    if silent and verb in WORDS.mutating | WORDS.also_mutating:
        hints = {"readOnlyHint": False, "destructiveHint": verb in WORDS.destroying}
        message = f'the name says "{verb}", but readOnlyHint and destructiveHint are missing'
        yield Remark(message, "annotations", LintSuggestion("/annotations", hints))


_ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LOOKALIKES = str.maketrans("0оОаАеЕіІсСрРхХуУ|", "oooaaeeiiccppxxyyl")  # noqa: RUF001 - they are meant
_NAMED = 5


@lint_rule("E113", "duplicate tool name", LintSeverity.ERROR, "surface")
def duplicate_names(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """A client can call only one of them, and nobody knows which.

    Give each tool a unique name.
    """
    counts = Counter(tool.name for tool in surface.tools)
    for name, count in counts.items():
        if count > 1:
            yield Remark(f'{count} tools are named "{name}"', "name", item=name)


@lint_rule("L202", "tool name that clients reject", LintSeverity.WARNING, "tool")
def awkward_name(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """Many clients and model APIs accept only letters, digits, _ and -, and at most 64 characters.

    Rename the tool. Its title can hold any text.
    """
    name = tool.fields.get("name")
    if isinstance(name, str) and name and not _ACCEPTED.fullmatch(name):
        plain = "_".join(words_of(name))[:64]
        added = LintSuggestion("/name", plain) if plain and plain != name else None
        yield Remark("the name has characters or a length that clients reject", "name", added)


@lint_rule("L203", "tool without a usable name or definition", LintSeverity.ERROR, "tool")
def unusable_tool(tool: Item, limits: LintLimits) -> Iterator[Remark]:
    """A client cannot call it.

    Give each tool a non-empty string as name and an object as inputSchema.
    """
    if not isinstance(tool.raw, dict):
        yield Remark("the definition is not an object")
        return
    name = tool.raw.get("name")
    if not isinstance(name, str) or not name.strip():
        yield Remark("has no name", "name")
    if not isinstance(tool.raw.get("inputSchema"), dict):
        empty = LintSuggestion("/inputSchema", {"type": "object"})
        yield Remark("has no object as inputSchema", "inputSchema", empty)


@lint_rule("L204", "easily confused tool names", LintSeverity.WARNING, "surface")
def confusable_names(surface: Surface, limits: LintLimits) -> Iterator[Remark]:
    """Models and people mix up names that differ only in case, separators, plural or look-alike
    letters.

    Make the names differ in at least one word.
    """
    alike: dict[str, dict[str, None]] = {}
    for tool in surface.tools:
        if isinstance(tool.fields.get("name"), str):
            alike.setdefault(skeleton(tool.name), {})[tool.name] = None
    for names in alike.values():
        first, *others = names
        if others:
            listed = some_of([f'"{name}"' for name in others], _NAMED)
            yield Remark(f"is easily confused with {listed}", "name", item=first)


def skeleton(name: str) -> str:
    """What is left of a name when everything is gone that is easily overlooked."""
    flat = unicodedata.normalize("NFKD", name[:500]).translate(_LOOKALIKES)
    seen = "".join(one for one in flat if unicodedata.category(one)[0] in "LN")
    words = [word.rstrip("s") for word in words_of(seen)] if seen.isascii() else [seen.casefold()]
    return "".join(words).replace("l", "i").replace("1", "i")
