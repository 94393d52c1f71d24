"""Text that is not for the reader: invisible characters, orders to the model."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcptest.explore.lint.declare import lint_rule
from mcptest.explore.lint.finding import Limits, Remark, Severity
from mcptest.explore.lint.surface import Surface

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


@lint_rule(
    "L215",
    "invisible characters",
    Severity.ERROR,
    "surface",
    why="A model reads what no reviewer sees; it is how instructions are smuggled.",
    fix="Take them out.",
)
def invisible_characters(surface: Surface, limits: Limits) -> Iterator[Remark]:
    for one in surface.texts:
        plain = one.text.isascii() and one.text.isprintable()
        if found := (None if plain else _INVISIBLE.search(one.text)):
            message = (
                f"{one.field} holds the character U+{ord(found.group()):04X} at {found.start()}"
            )
            yield Remark(message, one.field, item=one.item, kind=one.kind)


@lint_rule(
    "L216",
    "text that gives orders to the model",
    Severity.ERROR,
    "surface",
    why="A description says what a tool does. One that tells a model what else to do is an attack.",
    fix="Describe the tool; leave the rest to the client.",
)
def orders_to_the_model(surface: Surface, limits: Limits) -> Iterator[Remark]:
    for one in surface.texts:
        found = _ORDERS.search(one.text) if _may_give_orders(one.text) else None
        if found:
            message = f'{one.field} speaks to the model: "{found.group()[:80]}"'
            yield Remark(message, one.field, item=one.item, kind=one.kind)


def _may_give_orders(text: str) -> bool:
    """Whether a word is in it without which no order is given: cheaper than looking for orders."""
    small = text.lower()
    return any(sign in small for sign in _SIGNS)
