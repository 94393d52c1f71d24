"""The prompts on offer, and the values that complete their arguments."""

from __future__ import annotations

from mcptest.servers.demo import versions
from mcptest.servers.demo.jsonrpc import (
    INVALID_PARAMS,
    SCHEMAS,
    Declared,
    Refusal,
    require_fit,
)
from mcptest.servers.demo.resources import DEMO, headed

TYPE_CHECKING = False  # see jsonrpc
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from mcptest.servers.demo.exchange import Body
    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.tool_list import Call
    from mcptest.servers.demo.world import World

MAX_COMPLETIONS = 100


def says(role: str, words: str) -> Obj:
    return {"role": role, "content": {"type": "text", "text": words}}


class Argument(Declared):
    """One argument of a prompt, with the values that are suggested for it."""

    name: str
    title: str
    description: str
    required: bool
    values: tuple[str, ...] = ()

    def describe(self, version: str) -> Obj:
        return {**headed(self, version, name=self.name), "required": self.required}


class Prompt(Declared):
    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...] = ()
    since: str = versions.V2024_11_05
    messages: Callable[[World, dict[str, str]], list[Obj]] | None = None
    asks: Callable[[], Generator[Any, Any, str]] | None = None
    """What it asks the client before it says anything; then it has no messages."""

    def describe(self, version: str) -> Obj:
        shown = headed(self, version, name=self.name)
        if self.arguments:
            shown["arguments"] = [item.describe(version) for item in self.arguments]
        return shown

    def argument(self, name: str) -> Argument:
        """Raises Refusal for one that the prompt does not have."""
        for argument in self.arguments:
            if argument.name == name:
                return argument
        raise Refusal(INVALID_PARAMS, f"Prompt {self.name} has no argument {name[:80]!r}")


def _review(world: World, arguments: dict[str, str]) -> list[Obj]:
    language = arguments.get("language", "")
    kind = f"this {language} code" if language else "this code"
    return [says("user", f"Please review {kind}:\n\n{arguments['code']}")]


def declared_prompt(offers: Obj, name: str, **code: Any) -> Prompt:
    """The prompt of this name, as the offers have it; `code` is what it says, where they don't tell
    that, or what it asks."""
    about = dict(offers["prompts"][name])
    words, said = about.pop("says", None), about.pop("messages", None)
    if words is not None:
        code["messages"] = lambda world, given: [says("user", words.format_map(given))]
    elif said is not None:
        code["messages"] = lambda world, given: said
    arguments = tuple(Argument(**one) for one in about.get("arguments", ()))
    return Prompt(name, **{**about, "arguments": arguments, **code})


PROMPTS: tuple[Prompt, ...] = (
    declared_prompt(DEMO, "greet"),
    declared_prompt(DEMO, "review", messages=_review),
    declared_prompt(DEMO, "with_image"),
)
EXTRA = declared_prompt(DEMO, "extra_prompt")


def offered_prompts(call: Call) -> list[Prompt]:
    offered = call.world.content.prompts
    extra = [EXTRA] if call.has_extra("prompts") else []
    return [*(one for one in offered if versions.since(call.version, one.since)), *extra]


def find_prompt(call: Call, name: str) -> Prompt:
    for prompt in offered_prompts(call):
        if prompt.name == name:
            return prompt
    raise Refusal(INVALID_PARAMS, f"Unknown prompt: {name[:200]}")


def get_prompt(call: Call) -> Obj | Body:
    require_fit(call.params, SCHEMAS["prompt"])
    prompt, arguments = find_prompt(call, call.params["name"]), call.params.get("arguments", {})
    for given in arguments:
        prompt.argument(given)
    for name in (one.name for one in prompt.arguments if one.required):
        if name not in arguments:
            raise Refusal(INVALID_PARAMS, f"Prompt {prompt.name} needs the argument {name}")
    if prompt.asks is not None:
        return _asking(prompt, prompt.asks())
    messages = prompt.messages(call.world, arguments) if prompt.messages is not None else []
    return {"description": prompt.description, "messages": messages}


def _asking(prompt: Prompt, asking: Generator[Any, Any, str]) -> Body:
    words = yield from asking
    return {"description": prompt.description, "messages": [says("user", words)]}


def complete(call: Call) -> Obj:
    """The values that begin with what is there, at most a hundred, and how many there are."""
    require_fit(call.params, SCHEMAS["completion"])
    wanted = call.params["argument"]
    known, begun = _candidates(call, call.params["ref"], wanted["name"]), wanted["value"].lower()
    matches = [one for one in known if one.lower().startswith(begun)]
    return {
        "completion": {
            "values": matches[:MAX_COMPLETIONS],
            "total": len(matches),
            "hasMore": len(matches) > MAX_COMPLETIONS,
        }
    }


def _candidates(call: Call, ref: Obj, name: str) -> tuple[str, ...]:
    if ref["type"] == "ref/prompt":
        if not isinstance(ref.get("name"), str):
            raise Refusal(INVALID_PARAMS, "Invalid params: ref.name must be a string")
        return find_prompt(call, ref["name"]).argument(name).values
    templates = (one for one in call.world.content.templates if one.uri == ref.get("uri"))
    template = next(templates, None)
    if template is None:
        raise Refusal(INVALID_PARAMS, "Invalid params: ref.uri names no template of this server")
    if name != template.variable:
        raise Refusal(INVALID_PARAMS, f"The template has no variable {name[:80]!r}")
    return template.values()
