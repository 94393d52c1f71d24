"""Where mcptest means to say something else than mcp-assert: assertion by assertion.

The tables of `suites` hold the right verdict, which is ours. Here stands what mcp-assert says
instead, and the row of docs/mcp-assert-differences.md that gives the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

MILLION = "whole numbers from 1,000,000 on in `json_path` and `args_contain`"
PATHS = "`x[0][1]`, `$[0]`, `x[-1]`, `*`, `..` in paths"
CAPTURE_PATHS = "captures with `$[0]` and other paths of RFC 9535"
COUNTS = "`min_results` on lists of prompts, resources, completions"
COMPLETION = "`completion/complete`"
NOTIFICATIONS = "notifications, log messages and progress on stdio and HTTP"
NO_EXPECTATION = (
    "test without an effective expectation (`expect: {}`, `contains: []`, `not_error: false`)"
)
OVER_HTTP = "`client_capabilities` and `assert_sampling` over HTTP and SSE"
TEMPLATES = "templates in resource URIs, completion, `env`, `cwd`"
TO_CAPTURE = "`{{name}}` that nothing captures, `{{fixture}}` without `--fixture`"
NO_REQUEST = (
    "`assert_resources` or `assert_prompts` without a request, a `ref.type` that there is not"
)
FILES = "`{{fixture}}` in the paths of `file_*` outside of `assert`"
NO_TRACE = "an audit log that is empty, or in which no event names a tool"
NO_PATTERN = "invalid pattern in `matches_regex`"


@dataclass(frozen=True)
class Difference:
    """What mcp-assert says, and the row that tells why we do not."""

    theirs: str
    row: str


def _all(theirs: str, rows: dict[str, str]) -> dict[str, Difference]:
    return {name: Difference(theirs, row) for name, row in rows.items()}


DIFFERENCES: dict[str, Difference] = {
    **_all(
        "FAIL",
        {
            "a file beside the written one is unchanged": "`{{fixture}}` in `file_unchanged`",
            "a path into an array at the root": PATHS,
            "json_path to a million": MILLION,
            "json_path into a list of lists": PATHS,
            "a capture from an array at the root": CAPTURE_PATHS,
            "a captured value in the URI of a resource": TEMPLATES,
            "the fixture in the environment of the server": TEMPLATES,
            "a variable with a default": "`${NAME:-default}`",
            "the list of prompts can be counted": COUNTS,
            "an empty prefix is completed to everything": COMPLETION,
            "a template of resources is completed": COMPLETION,
            "a completion that is not there has a member of zero": COMPLETION,
            "completion over HTTP": COMPLETION,
            "log messages without capabilities of the client": NOTIFICATIONS,
            "notifications without capabilities of the client": NOTIFICATIONS,
            "min_progress holds": "progress",
            "progress is counted": "progress",
            "progress over HTTP": "progress",
            "an update arrives some seconds after the subscription": "`expect_notification: true`",
            "a mocked model over HTTP": OVER_HTTP,
            "a server that says much on stderr": "what a server writes to stderr",
            "args_contain holds for the second call": "`args_contain`",
            # refused when the suite is loaded
            "a count below zero": "a count below zero (`max_results: -1`)",
            "no request to prompts": NO_REQUEST,
            "no request to resources": NO_REQUEST,
            "a reference of an unknown type": NO_REQUEST,
            "a timeout of nothing": "`timeout: 0`, or below",
            # every block sees the disk
            "a file of the fixture is looked at after reading a resource": FILES,
        },
    ),
    **_all(
        "PASS",
        {
            "a file that exists is missed after a prompt": FILES,
            "net_delta is cut to a whole number": "`net_delta` 0.9 for 0",
            "too many notifications without capabilities of the client": NOTIFICATIONS,
            "an unwanted method without capabilities of the client": NOTIFICATIONS,
            "min_progress without capture_progress": "`min_progress` without `capture_progress`",
            "a tool that only the older revisions have": "the revision that is spoken",
            "an audit log without any call": NO_TRACE,
            # refused when the suite is loaded
            "a misspelled expectation": "unknown key",
            "an expectation that asks for nothing": NO_EXPECTATION,
            "an empty text that is always there": '`contains: [""]`, `contains: [null]`',
            "a flag that is false": NO_EXPECTATION,
            "two blocks in one test": "two blocks in one test",
            "a timeout that is none": "unparsable `timeout`",
            "a variable that nothing captures": TO_CAPTURE,
            "a list and a reading at once": "`list` together with `read` or `get`",
            "an unknown action of elicitation": "unknown `action` of elicitation",
            "a trajectory over no tools": "a trajectory over no calls at all, or without tools",
            "the fixture with spaces around its name": "`{{ fixture }}` with spaces",
            "min_progress where nobody counts": "`min_progress` in another block than `assert`",
        },
    ),
}
