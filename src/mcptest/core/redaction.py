"""Secrets: what is one, by its name, and those that this process was given, for whoever writes.

Names decide: those of variables, headers, options of a command and parameters of a URL
(`is_secret_name`, the one list). Whatever stands where such a name says so is found here; it is
replaced by `core/masking.py`.

There is one set of secrets for the process. Whatever gives us a secret tells so here: our
environment, our command line (`commands/app.py`) and each server (`transport/target.py`). Whatever
writes asks here: the recorder, our own streams (`commands/output.py`) and everything that writes a
file (`transport/files.py`). So neither a new command nor a new report has to remember it. What the
secrets are is found out when something is written, and not before.
"""

from __future__ import annotations

import contextlib
import functools
import re
from _thread import allocate_lock  # as `threading.Lock`, which is not for this package
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from mcptest.core.masking import Masker

SHORTEST_SECRET = 4
"""A shorter value is no secret, and masking it would blot out half of the text."""


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_SECRET_WORDS = frozenset(
    _listed(
        "apikey auth authorization bearer cookie cookies cred creds credential credentials dpop "
        "dsn jwt key keys otp pass passphrase passwd password passwords pat private pw pwd secret "
        "secrets session sid sig signature token tokens webhook"
    )
)
"""A name with one of these words is that of a secret. The only list of its kind."""
_SECRET_PARTS = re.compile(
    "apikey|accesskey|privatekey|token|secret|passw|passphrase|credential|connectionstring"
)
"""The same where words are written together: PGPASSWORD, accessToken."""
_ABOUT_A_SECRET = frozenset(
    _listed(
        "algorithm audience count desktop dir directory disabled enabled endpoint env expires "
        "expiry file folder home host issuer length limit max method min mode name path port "
        "prefix provider scheme scope scopes size sock socket timeout ttl type uri url user "
        "username"
    )
)
"""A name that ends with one of these says where a secret is or how it is used: TOKEN_URL."""
_NO_SECRETS = frozenset(
    _listed("PWD DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION MAX_TOKENS SESSION_MANAGER")
)
_BETWEEN_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_URL = re.compile(r"://(?:([^/?#\s\"']*)@)?[^\s\"']*")
"""From its `://` on: with the scheme, a long word would be searched from each of its letters."""
_PARAMETER = re.compile(r"[?&;#]([^=&;#?]+)=([^&;#]+)")
_NAMED_VALUE = re.compile(r"(?s)-{0,2}([A-Za-z_][\w.-]*)(?:=|:\s+)(.+)")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})")
_MEMBER = re.compile(
    r"""(?<![\w.-])([\w.-]+)["']?\s*[:=]\s*"""
    r"""(?:"([^"]*)"|'([^']*)'|([^\s"',{}\[\]][^"',{}\[\]#]*))"""
)
_SCHEMES = frozenset({"basic", "bearer", "digest", "dpop", "negotiate", "token"})
_DEEP = 3
_SHORT_LINE = 16
_SHORT_WORD = 8
_SHORT_NUMBER = 8
_ORDINARY = frozenset(
    _listed(
        "changeme default development disabled localhost password placeholder postgres production "
        "undefined"
    )
)


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a variable, a header or an option of this name holds a secret."""
    if name.upper() in _NO_SECRETS:
        return False
    words = [word.lower() for word in _BETWEEN_WORDS.split(name) if word]
    if not words or (words[-1] in _ABOUT_A_SECRET and "webhook" not in words):
        return False
    return not _SECRET_WORDS.isdisjoint(words) or bool(_SECRET_PARTS.search("".join(words)))


def is_credential_header(name: str) -> bool:
    """Headers of MCP repeat what the message says, and those of CORS grant something."""
    return not name.lower().startswith(("mcp-", "access-control-")) and is_secret_name(name)


def secrets_of_environment(env: Mapping[str, str]) -> Iterator[str]:
    """Values of variables that are secrets by their name, and secrets within URLs."""
    for name, value in env.items():
        if "://" in value and (within := secrets_of_url(value)):
            yield value
            yield from within
        elif is_secret_name(name) and not is_ordinary(value):
            yield value
            yield from _parts_of(value)


def inherited_secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """The same for our own environment, which is asked for again and again."""
    return _inherited_secrets(frozenset(env.items()))


@functools.lru_cache(maxsize=4)
def _inherited_secrets(variables: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(secrets_of_environment(dict(variables)))


def _parts_of(value: str) -> Iterator[str]:
    """What may turn up alone: the token behind a scheme, a line of a key, a member of an object."""
    scheme, _, token = value.partition(" ")
    if token and scheme.lower() in _SCHEMES:
        yield from (one for one in secrets_of_header(value) if not is_ordinary(one))
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        yield from (one for one in lines if len(one) >= _SHORT_LINE and not one.startswith("-----"))
    if value.lstrip().startswith("{"):
        import json

        with contextlib.suppress(ValueError, RecursionError):
            yield from _secrets_of_object(json.loads(value))


def _secrets_of_object(value: Any) -> Iterator[str]:
    members = value.items() if isinstance(value, dict) else ()
    yield from secrets_of_environment({k: v for k, v in members if isinstance(v, str)})
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _secrets_of_object(inner)


def secrets_of_url(text: str) -> dict[str, str]:
    """Secrets within the URLs of a text, each with a name: who somebody is (`user:password@`), and
    parameters that have the name of a secret."""
    found: dict[str, str] = {}
    for url in _URL.finditer(text):
        user, _, password = (url[1] or "").partition(":")
        found |= dict.fromkeys(_plain_and_decoded(password), "URL_PASSWORD")
        found |= dict.fromkeys(_plain_and_decoded(user), "URL_USER")
        for name, value in _PARAMETER.findall(url[0]):
            if is_secret_name(name):
                found |= dict.fromkeys(_plain_and_decoded(value), name)
    return found


def _plain_and_decoded(text: str) -> Iterator[str]:
    from urllib.parse import unquote, unquote_plus

    yield from (one for one in {text, unquote(text), unquote_plus(text)} if not is_ordinary(one))


def secrets_of_command(words: Sequence[str], depth: int = 0) -> dict[str, str]:
    """The secrets within the words of a command, and a name for each.

    They stand behind an option with the name of a secret (`--api-key X`, `--api-key=X`), in a
    variable or header (`API_KEY=X`, `-H "Authorization: Bearer X"`), or in a URL. `depth`: how many
    words this one stands in.
    """
    found: dict[str, str] = {}
    for word, following in pairwise((*words, "")):
        found |= _secrets_of_word(word, depth)
        if not word.startswith("-") or "=" in word or not is_secret_name(word):
            continue
        if not is_ordinary(following) and not following.startswith("-"):
            found |= _named(word, following)
    return found


def _secrets_of_word(word: str, depth: int) -> dict[str, str]:
    found = secrets_of_url(word) if "://" in word else {}
    if named := _NAMED_VALUE.fullmatch(word):
        if is_secret_name(named[1]):
            found |= _named(named[1], named[2])
        elif depth < _DEEP:  # --header=Authorization: Bearer X, --headers a=b,Api-Key=X
            for part in {named[2], *named[2].split(",")}:
                found |= _secrets_of_word(part, depth + 1)
    for bearer in _BEARER.finditer(word):
        if not bearer[1].isalpha():
            found.setdefault(bearer[1], "authorization")
    if " " in word and depth < _DEEP:
        import shlex

        with contextlib.suppress(ValueError):
            found |= secrets_of_command(shlex.split(word), depth + 1)
    return found


def secrets_of_line(line: str) -> dict[str, str]:
    """The secrets within a line of YAML or JSON that can't be read."""
    found = secrets_of_url(line)
    for name, *values in _MEMBER.findall(line):
        value = "".join(values).strip()
        if is_secret_name(name) and not is_ordinary(value):
            found |= _named(name, value)
    return found


def _named(name: str, value: str) -> dict[str, str]:
    """A value with the name of a secret, and the parts of it."""
    values = (value, *_parts_of(value))
    return {one: name.lstrip("-") for one in values if not is_ordinary(one)}


def is_ordinary(value: str) -> bool:
    """Whether it is a word or number of everyday use. To replace it everywhere hides nothing worth
    hiding, and changes what a message says and with it the verdict."""
    if value.isascii() and value.isalpha() and value in (value.lower(), value.upper()):
        return len(value) < _SHORT_WORD or value.lower() in _ORDINARY
    return len(value) < SHORTEST_SECRET or (value.isdigit() and len(value) < _SHORT_NUMBER)


def secrets_of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """What to hide of the headers that are given for a server: those with the name of a secret."""
    for name, value in headers.items():
        if is_credential_header(name):
            yield from (one for one in secrets_of_header(value) if not is_ordinary(one))


def secrets_of_header(value: str) -> Iterator[str]:
    """What to hide of a credential: the whole value, and the token behind a scheme's name."""
    yield value
    scheme, _, token = value.partition(" ")
    if token and scheme.isalpha():
        yield token
    if ";" in value:  # a cookie
        yield from (part.partition("=")[2].strip() for part in value.split(";"))
    if scheme.lower() == "basic":
        import base64

        with contextlib.suppress(ValueError):
            pair = base64.b64decode(token, validate=True).decode("utf-8")
            yield pair
            yield pair.partition(":")[2]


def variable_of_header(name: str) -> str:
    """The variable that stands for the value of a header wherever that must not be written."""
    return f"MCP_{variable_of(name)}"


def variable_of(name: str) -> str:
    """A variable that stands for the secret of this name."""
    variable = "_".join(word for word in _BETWEEN_WORDS.split(name) if word).upper()
    return f"_{variable}" if variable[:1].isdigit() else variable


# -- Those that this process was given -----------------------------------------------------------

Source: TypeAlias = Callable[[], Iterable[str]]


class Redaction:
    """Gathers secrets, and masks what is written."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._given: object = None
        self._secrets: set[str] = set()
        self._masker: Masker | None = None
        self._lock = allocate_lock()

    def learn(self, source: Source, given: object = None) -> None:
        """Tell where secrets come from. It is asked before anything else is written.

        `given` is what it depends on: of ten thousand tests on one server, the first one tells.
        """
        if given is None or given != self._given:
            self._given = given
            self._sources.append(source)

    def forget(self) -> None:
        """Begin anew, as a process of its own would."""
        self._sources, self._given, self._secrets, self._masker = [], None, set(), None

    @property
    def secrets(self) -> frozenset[str]:
        """Everything that is known by now."""
        self._ask()
        return frozenset(self._secrets)

    def _ask(self) -> None:
        if not self._sources:
            return
        with self._lock:
            sources = self._sources.copy()
            found = {secret for source in sources for secret in source()}
            if not found <= self._secrets:
                self._secrets = self._secrets | found
                self._masker = None
            del self._sources[: len(sources)]  # not before: other threads write meanwhile

    @property
    def idle(self) -> bool:
        """Whether there is nothing to hide."""
        self._ask()
        return not self._secrets

    @property
    def masker(self) -> Masker:
        """Hides everything that is known by now."""
        self._ask()
        masker = self._masker
        if masker is None:
            from mcptest.core.masking import Masker

            with self._lock:  # or another thread would learn more, and forget this one, meanwhile
                masker = self._masker = self._masker or Masker(self._secrets)
        return masker

    def text(self, value: str) -> str:
        """A text as it may be shown."""
        return value if self.idle else self.masker.text(value)

    def value(self, value: Any) -> Any:
        """JSON as it may be told."""
        return value if self.idle else self.masker.value(value)

    def document(self, content: bytes) -> bytes:
        """The content of a file as it may be written."""
        return content if self.idle else self.masker.document(content)


redaction = Redaction()
"""There is one process, so there is one of these."""
