"""Keeping secrets out of the capture of a scenario, but not the tokens that its script made up."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from urllib.parse import unquote_plus

from mcptest.model.capture import Headers
from mcptest.model.masking import Masker
from mcptest.model.secrets import is_credential_header
from mcptest.peer.scripted.script import Script


class ScenarioMasker(Masker):
    """Masks every credential of a client except those that it has from us."""

    def __init__(self, script: Script, secrets: Iterable[str] = ()) -> None:
        super().__init__(secrets)
        self._script = script

    def headers(self, headers: Headers) -> Headers:
        masked = super().headers(headers)
        return tuple(
            (name, value) if self._has_it_from_us(name, value) else hidden
            for (name, value), hidden in zip(headers, masked, strict=True)
        )

    def _has_it_from_us(self, name: str, value: str) -> bool:
        if not is_credential_header(name):
            return False
        scheme, _, credential = value.strip().partition(" ")
        if scheme.lower() == "basic":
            credential = _secret_in(credential)
        return bool(credential) and credential in self._script.issued


def _secret_in(basic: str) -> str:
    """The password of HTTP's basic scheme, or nothing when it can't be read."""
    try:
        pair = base64.b64decode(basic, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
    return unquote_plus(pair.partition(":")[2])
