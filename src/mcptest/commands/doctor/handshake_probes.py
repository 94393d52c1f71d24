"""Probes for the steps between the revisions that begin with a handshake."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from mcptest.commands.doctor.examination import (
    AskedCall,
    Examination,
    arguments_for,
    breaks,
    is_result,
    not_used,
    probe,
    prompt_arguments,
    ready,
    said,
    some,
    uncalled_in_words,
    unchecked,
    unknown,
)
from mcptest.core.capture import Frame
from mcptest.core.errors import PeerError
from mcptest.core.judgement import Evidence
from mcptest.core.message import Kind
from mcptest.core.revision import Era
from mcptest.core.safe_text import show
from mcptest.probe.compliance.conversation import Asked
from mcptest.report.doctor import Judged
from mcptest.rules.migration import is_uri
from mcptest.rules.primitives import is_plain_tool_name
from mcptest.schema.validation import CompiledSchema, SchemaError, SchemaLimitError
from mcptest.session.connection import encode
from mcptest.session.lifecycle import PREFIX
from mcptest.session.tool_safety import is_safe
from mcptest.suite.sent_message import SentCheck
from mcptest.wire.envelope import decode

_BATCH_IDS = ("mcptest-batch-1", "mcptest-batch-2")
_MOST_TOOLS = 500
_UNKNOWN_NOTIFICATION = "notifications/mcptest/unknown"


@probe("agreement")
def agreement(examination: Examination) -> Judged:
    newer = examination.newer
    if examination.speaks_newer:
        return ready(f"the server agrees to {newer}")
    params = {
        "protocolVersion": newer.wire_version,
        "capabilities": {},
        "clientInfo": {"name": "mcptest", "version": "1"},
    }
    try:
        conversation = examination.site.open(begin=False)
    except PeerError as error:
        return unknown(f"there was no connection to offer it on: {error.message}")
    asked = conversation.ask(SentCheck(method="initialize", params=params))
    conversation.close()
    result = asked.exchange.result
    named = result.get("protocolVersion") if isinstance(result, dict) else None
    answer = f"the version {show(str(named), 40)}" if named is not None else said(asked)
    return breaks(f"the offer of {newer} is answered with {answer}", asked)


@probe("batches")
def batches(examination: Examination) -> Judged:
    asked, answered, alive = _send_batch(examination)
    if answered:
        return breaks("an array of messages is processed", asked)
    if not alive:
        return breaks("the server was not usable after an array of messages", asked)
    return ready(f"an array of messages is answered with {said(asked)}", asked)


@probe("batches-received")
def batches_received(examination: Examination) -> Judged:
    asked, answered, _ = _send_batch(examination)
    if answered == len(_BATCH_IDS):
        return ready("both messages of an array are answered", asked)
    return breaks(f"of two requests in an array {answered} were answered", asked)


def _send_batch(examination: Examination) -> tuple[Asked, int, bool]:
    """An array of two harmless requests: what came, how many results, and is it still alive?"""
    messages = [_alive_message(examination, one) for one in _BATCH_IDS]
    conversation = examination.conversation
    asked = conversation.ask(SentCheck(raw=encode(messages).decode()))
    answered = sum(
        one.kind is Kind.RESULT and one.id in _BATCH_IDS
        for message in asked.answers
        for one in (message.items or (message,))
    )
    return asked, answered, is_result(examination.ask(examination.alive))


def _alive_message(examination: Examination, identifier: str) -> dict[str, Any]:
    message: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": identifier,
        "method": examination.alive.method,
    }
    if examination.site.revision.era is Era.STATELESS:
        version = examination.site.revision.wire_version
        meta = {PREFIX + "protocolVersion": version, PREFIX + "clientCapabilities": {}}
        message["params"] = {"_meta": meta}
    return message


@probe("notifications")
def notifications(examination: Examination) -> Judged:
    conversation = examination.conversation
    place = len(conversation.tape.records)
    asked = conversation.notify(SentCheck(method=_UNKNOWN_NOTIFICATION))
    alive = examination.ask(examination.alive)
    stray = _answer_without_question(conversation.tape.records[place:], alive.identifier)
    if stray:
        told = Evidence(show(asked.sent, 200), show(examination.site.masker.message(stray), 300))
        return breaks("a notification is answered", told)
    if not is_result(alive):
        return breaks("the server was not usable after an unknown notification", asked, alive)
    return ready("an unknown notification is ignored", asked)


def _answer_without_question(records: list[Any], identifier: Any) -> bytes:
    for record in records:
        if isinstance(record, Frame) and record.sender == "server":
            message = decode(record.raw)
            if message.is_answer and message.id != identifier:
                return record.raw
    return b""


@probe("utf-8")
def utf_8(examination: Examination) -> Judged:
    frames = [
        record.raw
        for conversation in examination.site.conversations
        for record in conversation.tape.records
        if isinstance(record, Frame) and record.sender == "server"
    ]
    for raw in frames:
        try:
            raw.decode("utf-8")
        except UnicodeDecodeError as error:
            return breaks(f"a message is not UTF-8: {error.reason}", Evidence("", show(raw, 300)))
    return ready(f"all {len(frames)} messages that were seen are UTF-8")


@probe("meta-keys")
def meta_keys(examination: Examination) -> Judged:
    watch = examination.watch
    if watch.bad_meta_keys:
        keys = list(watch.bad_meta_keys)
        return breaks(f"keys of _meta: {some(keys)}", watch.bad_meta_keys[keys[0]])
    if not watch.meta_keys:
        return not_used("no _meta was seen")
    return ready(f"the keys of _meta follow the grammar: {some(watch.meta_keys)}")


@probe("tool-schemas")
def tool_schemas(examination: Examination) -> Judged:
    tools = list(examination.tools)[:_MOST_TOOLS]
    if not tools:
        return not_used("the server lists no tools")
    wrong, limited = _schema_problems(tools)
    if wrong:
        return breaks(f"schemas that are not valid: {some(wrong)}")
    if limited:
        return unchecked(f"schemas that can't be checked: {some(limited)}")
    return ready(f"the schemas of all {len(tools)} tools are valid")


def _schema_problems(tools: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Schemas that are not valid, and those of which nobody can say."""
    wrong, limited = [], []
    for tool, member in product(tools, ("inputSchema", "outputSchema")):
        if member == "outputSchema" and member not in tool:
            continue
        schema = tool.get(member)
        if not isinstance(schema, dict):
            wrong.append(f"{tool.get('name')}.{member} is no object")
            continue
        try:
            CompiledSchema(schema)
        except SchemaLimitError as error:
            limited.append(f"{tool.get('name')}.{member}: {error}")
        except SchemaError as error:
            wrong.append(f"{tool.get('name')}.{member}: {error}")
    return wrong, limited


@probe("tool-names")
def tool_names(examination: Examination) -> Judged:
    names = [str(tool.get("name")) for tool in examination.tools]
    if not names:
        return not_used("the server lists no tools")
    odd = [name for name in names if not is_plain_tool_name(name)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    advice = "; ".join(
        f"{words}: {some(found)}"
        for words, found in (("rename", odd), ("named more than once", twice))
        if found
    )
    return ready(f"{len(names) - len(odd)} of {len(names)} names are plain", advice=advice)


@probe("argument-errors")
def argument_errors(examination: Examination) -> Judged:
    tool = next((one for one in examination.tools if is_safe(one) and _requires(one)), None)
    if tool is None:
        return unknown("no tool that only reads has a required argument")
    params: dict[str, object] = {"name": tool.get("name"), "arguments": {}}
    asked = examination.ask(SentCheck(method="tools/call", params=params))
    result = asked.exchange.result
    if isinstance(result, dict) and result.get("isError") is True:
        return ready("a call without its arguments is a result with isError", asked)
    advice = f"a call without its required arguments is answered with {said(asked)}"
    return ready("wrong arguments are refused in another way", asked, advice=advice)


def _requires(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    required = schema.get("required") if isinstance(schema, dict) else None
    return isinstance(required, list) and bool(required)


@probe("structured-output")
def structured_output(examination: Examination) -> Judged:
    with_schema = [str(one.get("name")) for one in examination.tools if "outputSchema" in one]
    if not with_schema:
        return not_used("no tool has an outputSchema")
    seen = [call for call in examination.calls if "outputSchema" in call.tool]
    for call in seen:
        try:
            problem = _misfit(call)
        except SchemaLimitError as error:
            name = some([call.tool.get("name")])
            return unchecked(f"the structuredContent of {name} can't be checked: {error}")
        if problem:
            return breaks(f"{some([call.tool.get('name')])}: {problem}", call.asked)
    if not seen:
        return unknown(f"no tool with an outputSchema was called: {uncalled_in_words(examination)}")
    return ready(f"the structuredContent of {len(seen)} tools fits", seen[0].asked)


def _misfit(call: AskedCall) -> str:
    result = call.asked.exchange.result
    if not isinstance(result, dict) or result.get("isError") is True:
        return ""
    if "structuredContent" not in result:
        return "the result has no structuredContent" if "content" in result else ""
    try:
        misfit = CompiledSchema(call.tool.get("outputSchema")).misfit(result["structuredContent"])
    except SchemaLimitError:
        raise
    except SchemaError as error:
        return f"the outputSchema can't be used: {error}"
    return "" if misfit is None else f"structuredContent{misfit.pointer}: {misfit.reason}"


@probe("declared-only")
def declared_only(examination: Examination) -> Judged:
    beside = None if examination.unlisted else examination.another(declare=())
    if beside is None:
        return unknown("there was no second connection to look at")
    for call in examination.calls:
        arguments = arguments_for(call.tool)
        params = {"name": call.tool.get("name"), "arguments": arguments}
        beside.ask(SentCheck(method="tools/call", params=params))
    beside.ask(examination.alive)
    asked = [one for one in beside.asked if one.get("method") != "ping"]
    beside.close()
    if asked:
        methods = {str(one.get("method")) for one in asked}
        shown = show(examination.site.masker.text(json.dumps(asked[0])), 300)
        told = f"asked of a client that declares nothing: {some(sorted(methods))}"
        return breaks(told, Evidence("", shown))
    if examination.uncalled:
        return unknown(f"nothing was asked, but {uncalled_in_words(examination)}")
    return ready("nothing is asked of a client that declares nothing")


@probe("resource-uris")
def resource_uris(examination: Examination) -> Judged:
    listed = [one for one in examination.lists.get("resources", ()) if isinstance(one, dict)]
    if not listed:
        return not_used("the server lists no resources")
    wrong = [one.get("uri") for one in listed if not is_uri(str(one.get("uri")))]
    if wrong:
        return breaks(f"no URIs by RFC 3986: {some(wrong)}")
    return ready(f"all {len(listed)} resources have a URI")


@probe("titles")
def titles(examination: Examination) -> Judged:
    items = [one for items in examination.lists.values() for one in items if isinstance(one, dict)]
    titled = [one for one in items if "title" in one]
    if not titled:
        return not_used("nothing that is listed has a title")
    wrong = [one.get("name") for one in titled if not isinstance(one["title"], str)]
    if wrong:
        return breaks(f"titles that are no text: {some(wrong)}")
    return ready(f"{len(titled)} titles are texts")


@probe("completions")
def completions(examination: Examination) -> Judged:
    if examination.declares("completions"):
        return ready("completions is declared")
    for prompt in examination.lists.get("prompts", ()):
        arguments = list(prompt_arguments(prompt)) if isinstance(prompt, dict) else []
        if not arguments:
            continue
        reference = {"type": "ref/prompt", "name": prompt.get("name")}
        argument = {"name": arguments[0][0], "value": ""}
        params = {"ref": reference, "argument": argument}
        asked = examination.ask(SentCheck(method="completion/complete", params=params))
        if is_result(asked):
            return breaks("completion is served and not declared", asked)
        return not_used("completion is neither declared nor served", asked)
    return not_used("completion is not declared, and no prompt has an argument")


@probe("audio")
def audio(examination: Examination) -> Judged:
    watch = examination.watch
    if watch.bad_audio is not None:
        return breaks("audio without data or mimeType", watch.bad_audio)
    if not watch.audio:
        return not_used("no audio was seen")
    return ready(f"{watch.audio} pieces of audio have data and a MIME type")
