"""MSG-013 to MSG-015: which error codes there are in the stateless era."""

from __future__ import annotations

from mcptest.model.message import Kind
from mcptest.model.revision import STATELESS_ERA
from mcptest.model.verdict import Severity, Side
from mcptest.rules.check import Check
from mcptest.rules.declare import Watching, session_rule
from mcptest.rules.protocol import STATELESS_CODES
from mcptest.rules.session import Step


def _code_of(step: Step) -> int | None:
    error = step.error
    code = error.get("code") if isinstance(error, dict) else None
    return code if type(code) is int else None


@session_rule(
    "MSG-013",
    "error codes are those the revision allows",
    category="error-envelope",
    severity=Severity.MUST,
    side=Side.BOTH,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
)
def error_codes_are_allowed(check: Check) -> Watching:
    """From 2026-07-28 on -32020 to -32099 is reserved: only three of these codes have a meaning.

    -32020 is a header that does not match, -32021 a missing client capability, -32022 an
    unsupported version. -32002 (resource not found) and -32042 (URL elicitation required) of
    earlier revisions are not sent any more. An unknown code there will mean something else in a
    later revision.
    """
    while step := (yield):
        code = _code_of(step)
        if code is None:
            continue
        check.saw(step)
        if code == -32002 or (-32099 <= code <= -32020 and code not in STATELESS_CODES):
            retired = " any more" if code in {-32002, -32042} else ""
            check.violated(
                step,
                f"code {code} is not used{retired} in {step.revision}",
                expected="a code outside the reserved range, or a defined one",
                actual=str(code),
                pointer="/error/code",
            )


@session_rule(
    "MSG-014",
    "the old implementation-defined codes are not used",
    category="error-envelope",
    severity=Severity.SHOULD,
    side=Side.BOTH,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
)
def old_codes_are_avoided(check: Check) -> Watching:
    """New code stays away from -32000 to -32019.

    Implementations gave these codes meanings of their own, so that a receiver can't rely on any.
    Of these, -32001, -32003 and -32004 were in the release candidate of 2026-07-28: a peer that
    sends them was built to that draft. -32002 is judged by MSG-013.
    """
    while step := (yield):
        code = _code_of(step)
        if code is None or code == -32002:
            continue
        check.saw(step)
        if -32019 <= code <= -32000:
            check.violated(
                step,
                f"code {code} is in the range that has no agreed meaning",
                expected="a standard code, or one outside -32000 to -32019",
                actual=str(code),
                pointer="/error/code",
            )


@session_rule(
    "MSG-015",
    "the defined error codes carry their data",
    category="error-envelope",
    severity=Severity.MUST,
    side=Side.SERVER,
    spec="basic#error-codes",
    window=STATELESS_ERA,
    listens=(Kind.ERROR,),
    sender="server",
)
def defined_codes_carry_their_data(check: Check) -> Watching:
    """-32021 names the `requiredCapabilities`, -32022 the `supported` versions and the `requested`.

    A client uses the data to try again with a version or a capability that works; without it the
    error is a dead end.
    """
    while step := (yield):
        code = _code_of(step)
        if code not in {-32021, -32022}:
            continue
        check.saw(step)
        data = step.error.get("data")
        data = data if isinstance(data, dict) else {}
        if code == -32021 and not isinstance(data.get("requiredCapabilities"), dict):
            check.violated(step, "-32021 without data.requiredCapabilities", pointer="/error/data")
        elif code == -32022 and not isinstance(data.get("supported"), list):
            check.violated(step, "-32022 without data.supported", pointer="/error/data")
        elif code == -32022 and not isinstance(data.get("requested"), str):
            check.violated(step, "-32022 without data.requested", pointer="/error/data")
