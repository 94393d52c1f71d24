"""A server with one tool for each thing that can become of a call: `python -I -S explored.py`.

Words choose what is offered: `only=a,b` these tools, `many=N` so many more,
`strange` entries that are none, `bare` no annotations,
`paged` one tool a page, `prompts`, `resources`, `ticking` a resource that changes by itself;
`file=PATH` is what the tools that write write to; `slow=SECONDS` is what each request but the first
takes, and `log=PATH` is where the methods are written to.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])
STATE: dict = {"notes": ["first"], "counter": 0}
READS = {"readOnlyHint": True}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict = {"type": "object"}


def say(message: dict) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def text(words: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": words}], **more}


class Failed(Exception):  # noqa: N818 - it is an answer
    def __init__(self, code: int, message: str) -> None:
        self.error = {"code": code, "message": message}


def internal(args: dict) -> dict:
    raise Failed(-32603, "Internal error: 'NoneType' object has no attribute 'lower'")


def refuse(args: dict) -> dict:
    raise Failed(-32602, "I do not like it")


def leave(args: dict) -> dict:
    sys.stderr.write("Traceback: out of memory\n")
    sys.stderr.flush()
    os._exit(3)


def hang(args: dict) -> dict:
    """Say nothing any more, but leave at the end of our input: a test need not wait for that."""
    closed = select.poll()
    closed.register(0, 0)  # not for what there is to read
    closed.poll()
    sys.exit()


def garble(args: dict) -> dict:
    os.write(1, b"{this is no message\n")
    return hang(args)


def scribble(args: dict) -> dict:
    """Says that it only reads, and writes."""
    STATE["notes"].append("another")
    if "file" in WORDS:
        with open(WORDS["file"], "a") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write("scribbled\n")
    return text("I only read")


def append(args: dict) -> dict:
    """Says that it is idempotent, and is not."""
    STATE["counter"] += 1
    STATE["notes"].append(f"note {STATE['counter']}")
    return text("appended")


def put(args: dict) -> dict:
    """Idempotent in truth."""
    STATE["notes"] = ["put"]
    return text("put")


def bumped(name: str) -> int:
    STATE[name] = STATE.get(name, 0) + 1
    return STATE[name]


WRITES = {"readOnlyHint": False, "destructiveHint": False}
TOOLS = {
    "echo": (lambda args: text(args["text"]), TEXT, READS),
    "complain": (lambda args: text("no such thing", isError=True), TEXT, READS),
    "internal": (internal, TEXT, READS),
    "refuse": (refuse, TEXT, READS),
    "leave": (leave, NOTHING, READS),
    "leave_later": (lambda args: text("bye", leave=True), NOTHING, READS),
    "hang": (hang, NOTHING, READS),
    "garble": (garble, NOTHING, READS),
    "shapeless": (lambda args: "not an object", NOTHING, READS),
    "structured": (lambda args: text("{}", structuredContent={"n": 1}), NOTHING, READS),
    "misshapen": (lambda args: text("{}", structuredContent={"n": "one"}), NOTHING, READS),
    "unstructured": (lambda args: text("{}"), NOTHING, READS),
    "scribble": (scribble, NOTHING, READS),
    "append": (append, NOTHING, {**WRITES, "idempotentHint": True}),
    "put": (put, NOTHING, {**WRITES, "idempotentHint": True}),
    "clock": (lambda args: text(str(time.monotonic_ns())), NOTHING, READS),
    "silent": (lambda args: text("nobody says what I do"), NOTHING, None),
    "wipe": (lambda args: text("wiped"), NOTHING, {"destructiveHint": True}),
}
MORE = {
    # Only when they are named.
    "tally": (lambda args: text(str(len(STATE["notes"]))), NOTHING, READS),
    "count_calls": (lambda args: text(str(bumped("calls"))), NOTHING, READS),
    "coarse_clock": (lambda args: text(str(STATE["requests"] // 7)), NOTHING, READS),
    **{f"slow_{number}": (lambda args: text("done"), NOTHING, READS) for number in range(40)},
}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
CHOSEN = WORDS["only"].split(",") if "only" in WORDS else list(TOOLS)
TOOLS |= MORE
for number in range(int(WORDS.get("many", 0))):
    TOOLS[f"copy_{number}"] = TOOLS["echo"]
    CHOSEN.append(f"copy_{number}")


def described(name: str) -> dict:
    _, schema, hints = TOOLS[name]
    tool: dict = {"name": name, "inputSchema": schema}
    if hints is not None and "bare" not in WORDS:
        tool["annotations"] = hints
    if name in {"structured", "misshapen", "unstructured"}:
        tool["outputSchema"] = OUTPUT
    return tool


def tools_page(cursor: str | None) -> dict:
    if "paged" not in WORDS:
        strange: list = [{"inputSchema": {}}, "rubbish"] if "strange" in WORDS else []
        return {"tools": [*map(described, CHOSEN), *strange]}
    place = int(cursor or 0)
    page: dict = {"tools": [described(CHOSEN[place])]}
    if place + 1 < len(CHOSEN):
        page["nextCursor"] = str(place + 1)
    return page


PROMPTS = {"greet": [{"name": "who", "required": True}], "broken": []}


def prompt(params: dict) -> dict:
    if params["name"] == "broken":
        raise Failed(-32603, "Internal error")
    who = params.get("arguments", {})["who"]
    return {"messages": [{"role": "user", "content": {"type": "text", "text": f"Hello {who}"}}]}


def resource(uri: str) -> dict:
    if uri == "note://gone":
        raise Failed(-32603, "Internal error")
    words = str(time.monotonic_ns()) if uri == "note://clock" else "\n".join(STATE["notes"])
    return {"contents": [{"uri": uri, "text": words}]}


def answer(method: str, params: dict) -> object:
    if method == "initialize":
        capabilities: dict = {"tools": {}}
        capabilities |= {word: {} for word in ("prompts", "resources") if word in WORDS}
        info = {"name": "explored", "version": "1"}
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": info,
        }
    if method == "tools/list":
        return tools_page(params.get("cursor"))
    if method == "tools/call":
        return TOOLS[params["name"]][0](params.get("arguments", {}))
    if method == "prompts/list":
        return {"prompts": [{"name": n, "arguments": a} for n, a in PROMPTS.items()]}
    if method == "prompts/get":
        return prompt(params)
    if method == "resources/list":
        uris = ["note://all", *(["note://clock"] if "ticking" in WORDS else ["note://gone"])]
        return {"resources": [{"uri": uri, "name": uri} for uri in uris]}
    if method == "resources/read":
        return resource(params["uri"])
    if method == "ping":
        return {}
    raise Failed(-32601, "Method not found")


def take_time(method: str) -> None:
    if "log" in WORDS:
        with open(WORDS["log"], "a") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(f"{method}\n")
    if "slow" in WORDS:
        time.sleep(float(WORDS["slow"]))


def main() -> None:
    if "ROGUE_PIDS" in os.environ:
        with open(os.environ["ROGUE_PIDS"], "a") as file:  # noqa: PTH123 - pathlib is slow
            file.write(f"{os.getpid()}\n")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        bumped("requests")
        if message["method"] not in {"initialize", "server/discover"}:
            take_time(message["method"])
        try:
            result = answer(message["method"], message.get("params", {}))
        except Failed as failure:
            say({"id": message["id"], "error": failure.error})
            continue
        say({"id": message["id"], "result": result})
        if isinstance(result, dict) and result.get("leave"):
            os._exit(4)


if __name__ == "__main__":
    main()
