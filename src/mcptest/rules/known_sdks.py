"""How common a broken rule is, and what SDKs are known to do by themselves: measured, kept as data.

`known_sdks.yml` holds two measurements. One counts the published servers that break a rule. The
other says which rules a server breaks that is nothing but its SDK, and by which answers that SDK is
recognised. A failure is put down to an SDK only when the server shows all signs of that SDK and the
answer that broke the rule is the one that was measured: what merely might come from it is left to
the maintainer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from mcptest.core.judgement import Commonness, FromSdk, Judgement, RuleResult
from mcptest.core.loading import loaded_once

_FILE = Path(__file__).with_name("known_sdks.yml")


class Sign(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer by which an SDK is recognised."""

    method: str
    """The request that is answered."""
    answer: str
    """What its text contains, as a regular expression."""


class Behaviour(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that a server breaks which is nothing but its SDK."""

    rule: str
    transports: tuple[str, ...]
    received: str
    """What the answer that breaks the rule contains; empty where it is that nothing comes."""
    measured: tuple[str, ...] = ()
    """The versions that do it, oldest first, where not all of the SDK's do."""

    def explains(self, result: RuleResult, transport: str) -> bool:
        if result.id != self.rule or transport not in self.transports:
            return False
        received = [one.received for one in result.evidence]
        if not self.received:
            return bool(received) and not any(received)
        return any(re.search(self.received, text) for text in received)


class KnownSdk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One SDK over a range of versions in which it behaves alike."""

    name: str
    measured: tuple[str, ...]
    """The versions of it that were measured, oldest first."""
    shows: tuple[Sign, ...]
    """All of these have to be seen."""
    does: tuple[Behaviour, ...]

    def behind(self, result: RuleResult, transport: str) -> FromSdk | None:
        """This SDK in the versions that break the rule in just this way, if any does."""
        for one in self.does:
            if one.explains(result, transport):
                versions = one.measured or self.measured
                return FromSdk(self.name, " to ".join(dict.fromkeys((versions[0], versions[-1]))))
        return None


class KnownSdks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    when: str
    """The month of the measurement."""
    common: Mapping[str, tuple[int, int]]
    """By rule: how many published servers break it, and on how many it was observed."""
    sdks: tuple[KnownSdk, ...]
    """The more particular before the more general: the first that fits is the one."""

    def recognise(self, answers: Iterable[tuple[str, bytes]]) -> KnownSdk | None:
        """The SDK whose signs are all there; `answers` are methods with the text they got."""
        seen: dict[str, list[str]] = {}
        for method, raw in answers:
            seen.setdefault(method, []).append(raw.decode("utf-8", "replace"))

        def is_shown(sign: Sign) -> bool:
            return any(re.search(sign.answer, text) for text in seen.get(sign.method, ()))

        return next((sdk for sdk in self.sdks if all(map(is_shown, sdk.shows))), None)

    def commonness(self, rule: str) -> Commonness | None:
        counted = self.common.get(rule)
        return None if counted is None else Commonness(*counted, when=self.when)


@loaded_once
def known_sdks() -> KnownSdks:
    return msgspec.yaml.decode(_FILE.read_bytes(), type=KnownSdks)


def with_known_behaviour(judgement: Judgement, answers: Iterable[tuple[str, bytes]]) -> Judgement:
    """The same judgement; each failure says how common it is, and from which SDK it comes."""
    known = known_sdks()
    sdk = known.recognise(answers)
    told = tuple(
        _told(one, sdk, judgement.transport, known) if one.failed else one
        for one in judgement.results
    )
    return msgspec.structs.replace(judgement, results=told, sdk=sdk.name if sdk else "")


def _told(result: RuleResult, sdk: KnownSdk | None, transport: str, known: KnownSdks) -> RuleResult:
    source = None if sdk is None else sdk.behind(result, transport)
    return msgspec.structs.replace(result, common=known.commonness(result.id), from_sdk=source)
