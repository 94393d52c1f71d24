"""Tools that break every code which both linters know, and some that only look as if they did."""

from __future__ import annotations

from typing import Any

SAYS = "Looks up an invoice of a customer and returns it as text."
FORTY = {"type": "string", "description": "A number of the ledger.", "examples": ["L-17"]}


def tool(name: str, description: str | None = SAYS, **schema: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "inputSchema": {"type": "object", **schema}}
    if description is not None:
        made["description"] = description
    return made


def takes(*required: str, **properties: Any) -> dict[str, Any]:
    return {"properties": properties, "required": list(required)}


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string", "description": "The leaf."}
    for _ in range(levels - 1):
        inner = {"type": "object", "description": "A level.", "properties": {"below": inner}}
    return {"properties": {"top": inner}}


ONE_AND_ONE = {
    "silent": tool("silent", None),
    "blank": tool("blank", "   "),
    "vague": tool("vague", "Get Data"),
    "short": tool("short", "Invoices"),
    "brief": tool("brief", "Returns an invoice."),
    "long": tool("long", "Returns the ledger. " * 30),
    "untyped": tool("untyped", **takes(thing={"description": "A thing of the ledger."})),
    "undescribed": tool(
        "undescribed", **takes("ledger", ledger={"type": "integer"}, page={"type": "integer"})
    ),
    "generic": tool("generic", **takes(payload={"type": "object", "properties": {"a": FORTY}})),
    "unguided": tool(
        "unguided", **takes("ledger_key", ledger_key={"type": "string", "description": "A key."})
    ),
    "facing": tool("facing", **takes(homepage_url={"type": "string", "description": "A page."})),
    "secret": tool("secret", **takes(password={"type": "string", "description": "A word."})),
    "write_only": tool(
        "write_only",
        **takes(secret={"type": "string", "description": "A word.", "writeOnly": True}),
    ),
    "tokens": tool(
        "tokens",
        **takes(
            access_token={"type": "string", "description": "A word."},
            apikey={"type": "string", "description": "A word."},
            myBearer={"type": "string", "description": "A word."},
        ),
    ),
    "deep": tool("deep", **deep(5)),
    "shallow": tool("shallow", **deep(3)),
    "costly": tool(
        "costly",
        **takes(
            **{
                f"ledger_{n}_key": {"type": "integer", "description": "A ledger key, " * 8}
                for n in range(40)
            }
        ),
    ),
    "delete_ledger": tool("delete_ledger", "Takes the ledger away and returns nothing."),
    "set_ledger": tool(
        "set_ledger", "Returns the ledger that was there before, which it overwrites."
    ),
    "drifted": tool(
        "drifted",
        **takes(
            alpha={"type": "integer", "description": "First."},
            beta={"type": "integer", "description": "Second."},
        ),
    ),
    "many_verbs": tool(
        "many_verbs", "Can get and list and search and find what the ledger returns."
    ),
    "quiet": tool("quiet", "Looks after the invoices of one customer."),
    "cycle_a": tool(
        "cycle_a",
        "Returns what the moon looks like tonight.",
        **takes(phase={"type": "integer", "description": "Of the moon."}),
    ),
    "cycle_b": tool(
        "cycle_b",
        "Returns how high the tide will be.",
        **takes(phase={"type": "integer", "description": "Of the moon."}),
    ),
    "flow_a": tool(
        "flow_a",
        "Returns the harbour master on duty.",
        **takes(harbour={"type": "string", "description": "Of call."}),
    ),
    "flow_b": tool(
        "flow_b",
        "Returns ships at anchor, output as a table.",
        **takes(main_harbour={"type": "string", "description": "Of call."}),
    ),
    "twin": tool("twin", "Returns the second of two texts that are the same."),
    "twins": tool("twins", "Returns the second of two texts that are the same."),
}
NASTY = [*ONE_AND_ONE.values(), tool("silent", "Returns a tool whose name is taken twice.")]
ONLY_OURS_IS_RIGHT = [
    tool("get_dataset", "Returns the rows of one set of data."),
    tool(
        "enumerated",
        "Returns a colour by its name, as asked.",
        **takes(colour={"description": "A colour.", "enum": ["red"]}),
    ),
    {
        **tool("structured", "Looks at the sky above the town."),
        "outputSchema": {"type": "object", "properties": {"sky": {"type": "string"}}},
    },
]
