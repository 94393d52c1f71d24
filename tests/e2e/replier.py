"""A quick MCP server for tests of whole runs: `python -I -S replier.py [WORD…]`.

Words change what it does: `log=FILE` notes each start, call and end; `legacy` refuses the new era;
`name=X` is what `whoami` answers. What a call does is named by its tool.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time

WORDS = dict(word.partition("=")[::2] for word in sys.argv[1:])
STATE = {"calls": 0}


def note(text: str) -> None:
    if "log" in WORDS:
        with open(WORDS["log"], "a") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(f"{time.monotonic():.6f} {os.getpid()} {text}\n")


def say(message: dict) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def text(words: str, **more: object) -> dict:
    return {"content": [{"type": "text", "text": words}], **more}


def whole(path: str) -> str:
    with open(path) as file:  # noqa: PTH123 - pathlib is slow to import
        return file.read()


def write(args: dict) -> dict:
    with open(args["path"], "w") as file:  # noqa: PTH123 - pathlib is slow to import
        file.write(args["text"])
    return text("written")


def nap(args: dict) -> dict:
    time.sleep(args["seconds"])
    return text("awake")


def hang(args: dict) -> dict:
    """Say nothing any more, but leave at the end of our input: a test need not wait for that."""
    closed = select.poll()
    closed.register(0, 0)  # not for what there is to read
    closed.poll()
    sys.exit()


def leave(args: dict) -> dict:
    sys.stderr.write("I was told to\n")
    sys.stderr.flush()
    os._exit(args.get("code", 3))


def symbol(args: dict) -> dict:
    """Knows one identifier, at line 7, column 12."""
    if (args["line"], args["column"]) == (7, 12):
        return text("found it")
    return text("no identifier found", isError=True)


def sometimes(args: dict) -> dict:
    """Fails every other time, counted over all processes."""
    with open(args["file"], "a+") as file:  # noqa: PTH123 - pathlib is slow to import
        file.write("x")
        return text("good" if file.tell() % 2 else "bad")


CALLS = {
    "echo": lambda args: text(args.get("text", "hello")),
    "count": lambda args: text(str(STATE["calls"])),
    "whoami": lambda args: text(WORDS.get("name", "nobody")),
    "pid": lambda args: text(str(os.getpid())),
    "env": lambda args: text(os.environ.get(args["name"], "(unset)")),
    "argv": lambda args: text("\n".join(sys.argv[1:])),
    "nap": nap,
    "exit": leave,
    "hang": hang,
    "read": lambda args: text(whole(args["path"])),
    "write": write,
    "symbol": symbol,
    "sometimes": sometimes,
    "structured": lambda args: text("{}", structuredContent={"n": args["n"]}),
}


def call(name: str, args: dict) -> dict:
    STATE["calls"] += 1
    if name not in CALLS:
        return text(f"no tool {name}", isError=True)
    try:
        return CALLS[name](args)
    except OSError as error:
        return text(str(error), isError=True)


TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object"}},
    {
        "name": "structured",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    },
]


def answer(message: dict) -> None:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "replier", "version": "1"},
        }
    elif method == "tools/call":
        note(f"call {params['name']} {json.dumps(params.get('arguments'))}")
        result = call(params["name"], params.get("arguments", {}))
    elif method == "tools/list":
        result = {"tools": TOOLS}
    else:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        return
    say({"id": message["id"], "result": result})


def main() -> None:
    if "ROGUE_PIDS" in os.environ:
        with open(os.environ["ROGUE_PIDS"], "a") as file:  # noqa: PTH123 - pathlib is slow
            file.write(f"{os.getpid()}\n")
    note("start")
    if "slow" in WORDS:
        time.sleep(float(WORDS["slow"]))
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(message)
    note("end")


if __name__ == "__main__":
    main()
