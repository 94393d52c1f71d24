"""A server that tells a long secret in texts of many lengths: `python cutting_server.py WAY`.

Wherever a text is cut, the cut is within a secret now and then. WAY is how it tells more than its
answers do: on stderr, as noise on stdout, in half an answer at its end, or when it is called.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

LENGTHS = [50, 90, 150, 190, 250, 390, 900, 3_900, 65_000, 70_000, 140_000]
SECRET = os.environ["PLANTED_LONG_TOKEN"]


def told(chance: random.Random) -> str:
    length, parts = chance.choice(LENGTHS), [""]
    while sum(map(len, parts)) < length:
        parts += ["".join(chance.choices("abcdefghij ,.", k=chance.choice([1, 7, 20, 95]))), SECRET]
    return "".join(parts)


def answer(message: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    method, words = message["method"], told(chance)
    if method == "initialize":
        asked = message["params"]["protocolVersion"]
        info = {"name": f"x{words}", "version": words}
        offers = {"capabilities": {"tools": {}}, "serverInfo": info}
        return {"result": {"protocolVersion": asked, **offers}}
    if method == "tools/list":
        tool = {"name": "look", "description": words, "inputSchema": {"type": "object"}}
        return {"result": {"tools": [{**tool, "annotations": {"readOnlyHint": True}}]}}
    if method == "tools/call":
        content = [{"type": "text", "text": words}]
        return {"result": {"content": content, "isError": chance.random() < 0.5}}
    return {"error": {"code": -32601, "message": words, "data": words}}


def say(descriptor: int, words: str) -> None:
    rest = words.encode()
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def main(way: str) -> None:
    chance = random.Random(way)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if way in {"stderr", "noise"}:
            say({"stderr": 2, "noise": 1}[way], told(chance) + "\n")
        if way == "die" and message["method"] == "tools/call":
            say(2, told(chance))
            os._exit(4)
        whole = json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message, chance)})
        if way == "half":
            say(1, whole[: len(whole) // 2])
            say(2, told(chance))
            os._exit(3)
        say(1, whole + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
