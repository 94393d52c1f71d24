"""Faults in what servers ask of clients: sampling, elicitation, roots, and input in results."""

from __future__ import annotations

from tests.mutants.mutant import mutant
from tests.mutants.seams import (
    NOTHING,
    accept,
    both,
    calls,
    on_answer,
    on_message,
    params_of,
    patch,
    refuse,
    rewrite,
)

TYPE_CHECKING = False  # a mutant starts as often as the demo does
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tests.mutants.seams import Fault, Obj

ASKING = "test_input_required_result_elicitation"
SAMPLING = "sampling/createMessage"
ELICITATION = "elicitation/create"


def asks_undeclared(method: str) -> Fault:
    """The server asks this, whatever the client declared."""

    def make(missing: Any) -> Any:
        return lambda ask, declared: None if ask.method == method else missing(ask, declared)

    return both(
        patch("demo.handshake_era:missing_capability", make),
        patch("demo.stateless_era:missing_capability", make),
    )


def asked_in_a_result(change: Callable[[Obj], Any]) -> Fault:
    """Change the params of what is asked within a result."""

    def has_input(message: Obj) -> bool:
        result = message.get("result")
        return isinstance(result, dict) and result.get("resultType") == "input_required"

    def changed(message: Obj) -> None:
        for request in message["result"].get("inputRequests", {}).values():
            change(request.setdefault("params", {}))

    return rewrite(has_input, changed)


def tool_runs(name: str, body: Any) -> Fault:
    """Give a fixture another body."""

    def install() -> None:
        from mcptest.servers.demo.fixtures import TOOLS

        for tool in TOOLS:
            if tool.name == name:
                tool.run = body

    return install


UNDECLARED = "what was not declared is not asked for: that holds for every capability"

mutant(
    "SAMPLE-001",
    "the server samples with a client that can't",
    asks_undeclared(SAMPLING),
    also=UNDECLARED,
)
mutant(
    "SAMPLE-002",
    "the choice of tools is sent to a client that has none",
    on_message(SAMPLING, lambda params: params.update(toolChoice={"mode": "none"})),
)
mutant(
    "SAMPLE-003",
    "a priority is beyond 1",
    on_message(SAMPLING, lambda params: params.update(modelPreferences={"costPriority": 5})),
    also="the shape of the request says the same",
)
mutant(
    "SAMPLE-004",
    "the context of all servers is wanted",
    on_message(SAMPLING, lambda params: params.update(includeContext="allServers")),
)


def _mixed(used: Any) -> Any:
    def mixed(uses: list[Obj]) -> Obj:
        message: Obj = used(uses)
        return {**message, "content": [*message["content"], {"type": "text", "text": "Go on."}]}

    return mixed


mutant("SAMPLE-005", "a text stands beside tool results", patch("demo.exchange:_used", _mixed))
mutant(
    "ELICIT-001",
    "the server elicits with a client that can't",
    asks_undeclared(ELICITATION),
    also=UNDECLARED,
)


def _nested(params: Obj) -> None:
    nested = {"type": "object", "properties": {"street": {"type": "string"}}}
    params["requestedSchema"]["properties"]["address"] = nested


mutant(
    "ELICIT-002",
    "the form has an object within",
    on_message(ELICITATION, _nested),
    also="the shape of the request says the same",
)


def _any_mode(missing: Any) -> Any:
    def lenient(ask: Any, declared: Obj) -> Any:
        return None if "elicitation" in declared else missing(ask, declared)

    return lenient


mutant(
    "ELICIT-003",
    "a page is to be opened by a client that has forms only",
    patch("demo.handshake_era:missing_capability", _any_mode),
)
mutant(
    "ELICIT-004",
    "the message for the user is empty",
    on_message(
        ELICITATION,
        lambda params: params.update(message="") if params.get("mode") == "url" else None,
    ),
)


def _without_id(arguments: Obj, call: Any) -> Any:
    from mcptest.servers.demo.exchange import send_user_to, text
    from mcptest.servers.demo.fixtures import PAGE_URL

    words = yield from send_user_to(PAGE_URL, None)
    return text(words)


mutant(
    "ELICIT-005",
    "the elicitation with a page has no id",
    tool_runs("url_eliciting_tool", _without_id),
    also="the shape of the request says the same",
)


def _with_id(params: Obj) -> None:
    if params.get("mode") == "url":
        params["elicitationId"] = "page-1"


mutant("ELICIT-006", "the elicitation with a page has an id", asked_in_a_result(_with_id))


def _then_wants_more(arguments: Obj, call: Any) -> Any:
    from mcptest.servers.demo.exchange import send_user_to
    from mcptest.servers.demo.fixtures import PAGE_URL
    from mcptest.servers.demo.jsonrpc import Refusal

    yield from send_user_to(PAGE_URL, "page-1")
    raise Refusal(-32042, "Open a page first", {"elicitations": [{"mode": "form"}]})


mutant(
    "ELICIT-007",
    "an error wants pages without saying which",
    tool_runs("url_eliciting_tool", _then_wants_more),
    also="the shape of that error says the same",
)
mutant(
    "ELICIT-008",
    "a page is done with that nobody was sent to",
    on_message(
        "notifications/elicitation/complete", lambda params: params.update(elicitationId="other")
    ),
)


def _user_did_not_accept(message: Obj) -> bool:
    content = message.get("result", {})
    text = str(content.get("content", "")) if isinstance(content, dict) else ""
    return "declined to answer" in text or "closed the question" in text


mutant(
    "ELICIT-009",
    "a user who declines gets no answer",
    rewrite(_user_did_not_accept, lambda message: NOTHING),
    also="a request that is never answered is seen anywhere",
)
mutant(
    "ELICIT-010",
    "the page is fetched without protection",
    on_message(
        ELICITATION,
        lambda params: params.update(url="http://demo.example/") if "url" in params else None,
    ),
)
mutant(
    "ROOTS-001",
    "the roots are asked of a client that has none",
    asks_undeclared("roots/list"),
    also=UNDECLARED,
)

# -- input required ----------------------------------------------------------------------------

QUESTION: Obj = {"roots": {"method": "roots/list"}}
META: Obj = {"io.modelcontextprotocol/serverInfo": {"name": "mutant", "version": "1"}}
mutant(
    "MRTR-001",
    "a completion asks for input",
    accept(
        lambda request: (
            request.get("method") == "completion/complete"
            and params_of(request).get("ref", {}).get("name") == "greet"
            and "argument" in params_of(request)
        ),
        {"resultType": "input_required", "requestState": "x", "_meta": META},
    ),
    also="the rule about that completion wants values",
)
mutant(
    "MRTR-002",
    "a result asks for input and does not say which",
    accept(calls("roots_tool"), {"resultType": "input_required", "_meta": META}),
)
mutant(
    "MRTR-003",
    "the roots are asked of a client that has none",
    accept(
        calls("roots_tool"),
        {"resultType": "input_required", "inputRequests": QUESTION, "_meta": META},
    ),
    also="the rule about roots says the same",
)


def _trusting(check: Callable[[Any, Obj], bool]) -> Fault:
    """States are taken that are not ours, where `check` says so."""

    def make(read: Any) -> Any:
        def reading(state: Any, method: str, params: Obj, secret: bytes) -> Any:
            found = read(state, method, params, secret)
            return {} if found is None and check(state, params) else found

        return reading

    return patch("demo.stateless_era:read_state", make)


_given: list[str] = []


def _remember_states() -> None:
    def make(new: Any) -> Any:
        def making(*words: Any) -> str:
            state: str = new(*words)
            _given.append(state)
            return state

        return making

    patch("demo.stateless_era:new_state", make)()


mutant(
    "MRTR-101",
    "a state that was tampered with is taken",
    both(_remember_states, _trusting(lambda state, params: state not in _given)),
)
mutant(
    "MRTR-102",
    "a state is taken for other arguments",
    both(_remember_states, _trusting(lambda state, params: state in _given)),
)


def _retry(answers: Callable[[Any], bool]) -> Any:
    def when(request: Obj) -> bool:
        params = params_of(request)
        return "requestState" in params and answers(params.get("inputResponses"))

    return when


mutant(
    "MRTR-103",
    "a retry without answers is refused",
    refuse(_retry(lambda given: not given), -32602),
)
mutant(
    "MRTR-104",
    "an answer that nobody asked for is refused",
    refuse(_retry(lambda given: isinstance(given, dict) and len(given) > 1), -32602),
)


def _any_answers(check: Any) -> Any:
    def lenient(method: str, params: Obj, world: Any) -> Any:
        given = params.get("inputResponses")
        params = {**params, "inputResponses": given if isinstance(given, dict) else {}}
        return check(method, params, world)

    return lenient


mutant(
    "MRTR-105",
    "answers that are no object are taken for none",
    patch("demo.stateless_era:_check_answers", _any_answers),
)


def _asked_before() -> Fault:
    """After a question that is not answered, the next request fails."""
    state = {"asked": False}

    def change(message: Obj, request: Obj) -> Obj:
        if params_of(request).get("name") == ASKING:
            state["asked"] = "requestState" not in params_of(request)
        elif state["asked"] and request.get("method") == "server/discover":
            state["asked"] = False
            error = {"code": -32603, "message": "This is a mutant."}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return message

    return on_answer(lambda request: True, change)


mutant("MRTR-106", "a question that is not answered makes the next request fail", _asked_before())
