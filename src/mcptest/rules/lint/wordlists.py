"""The words by which the linter knows what a name or a text is about."""

from __future__ import annotations

import re


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


VAGUE = frozenset(
    {
        "get data",
        "process data",
        "do something",
        "execute",
        "run",
        "handle",
        "perform action",
        "utility",
        "helper",
    }
)
"""Descriptions that say nothing, as a whole."""

GENERIC_NAMES = frozenset(
    _listed(
        "data value input output payload info content body params args options config settings "
        "result object item obj val str num"
    )
)

USER_FACING = _listed(
    "query search email url uri phone address username name title message prompt question filter "
    "sort locale timezone language currency country region"
)
"""Parts of parameter names for which one example says more than a sentence."""

TELLING_NAMES = frozenset(
    _listed(
        "path paths file files filename filenames filepath directory dir folder url urls uri uris "
        "query sql email username password latitude longitude timezone owner repo branch commit"
    )
)
"""Names of parameters that say what to pass without a description."""
TELLING_ENDINGS = frozenset(
    _listed("id ids name names number title text date time count index key slug")
)
"""The same behind a word that says of what: `user_id`."""

MUTATING = frozenset(
    _listed(
        "create delete remove update modify write insert drop destroy set put post send publish "
        "push add patch replace"
    )
)
ALSO_MUTATING = frozenset(
    _listed(
        "append archive clear disable edit enable erase execute kill move overwrite purge rename "
        "reset revoke save store submit truncate upload wipe"
    )
)
"""Verbs that mcp-assert does not know: used by our own codes only."""
DESTROYING = frozenset(_listed("delete remove drop destroy erase purge wipe truncate kill revoke"))
ACKNOWLEDGING = (
    "creates",
    "deletes",
    "removes",
    "updates",
    "modifies",
    "writes",
    "sends",
    "publishes",
    "mutates",
    "changes",
    "inserts",
    "drops",
    "side effect",
    "not idempotent",
    "destructive",
    "irreversible",
    "will create",
    "will delete",
    "will update",
    "will modify",
)
"""Words by which a description owns up to what the tool changes."""

ACTIONS = _listed(
    "get fetch read list search find query create add insert write post send publish update modify "
    "patch set change replace delete remove destroy drop clear validate check verify test convert "
    "transform parse format"
)
RETURNING = ("return", "output", "produces", "responds with", "result")

SENSITIVE = _listed(
    "password passwd secret api_key apikey api-key auth_token credential private_key privatekey "
    "access_key accesskey client_secret webhook_secret bearer jwt"
)
ALSO_SENSITIVE = _listed(
    "accesstoken refreshtoken apitoken authtoken sessiontoken idtoken bottoken oauthtoken "
    "passphrase passcode pincode otpcode cvv ssn creditcard cardnumber"
)
"""Without separators: what mcp-assert lets through."""
SENSITIVE_WORDS = frozenset(_listed("token otp pin"))
"""As the whole name only: a page token is none of our business."""

SHARED_BY_NATURE = frozenset(
    _listed(
        "path file name type id url dir directory format output input mode source destination "
        "target content pattern query text encoding recursive limit offset exclude include filter "
        "options command language uri root new_text old_text scope connect message description "
        "title workspace_edit body code prompt instructions template expression regex selector"
    )
)
"""Parameters that many tools have in common without one feeding the other."""
SHARED_ENDINGS = _listed(
    "_path _file _dir _root _directory _id _ids _uri _url _name _command _language _text _content "
    "_message _description _query _pattern _filter _edit"
)

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


def words_of(name: str) -> list[str]:
    """`getUserById`, `get-user_by.id` as words in small letters."""
    return [word.lower() for word in _BOUNDARY.split(name[:500]) if word]


def plain(name: str) -> str:
    """A name without what people write differently: case and separators."""
    return "".join(words_of(name))


def is_shared_by_nature(name: str) -> bool:
    small = name.lower()
    return small in SHARED_BY_NATURE or small.endswith(SHARED_ENDINGS)
