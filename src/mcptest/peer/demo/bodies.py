"""What each tool does. A body returns a result, or is a generator that sleeps and asks."""

from __future__ import annotations

from mcptest.peer.demo import versions
from mcptest.peer.demo.asking import confirm_with_user, list_client_roots, sample_from_model
from mcptest.peer.demo.call import failure, structured, text
from mcptest.peer.demo.pictures import PNG_BASE64
from mcptest.peer.demo.resources import GREETING_URI, describe_resource, read_resource
from mcptest.peer.demo.world import LEVELS

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from mcptest.peer.demo.call import Call
    from mcptest.peer.demo.exchange import Body
    from mcptest.peer.demo.protocol import Obj

MAX_PROGRESS_STEPS = 20
_CONDITIONS = ("sunny", "cloudy", "rainy", "windy", "snowy")
_DIRECTIONS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def add(arguments: Obj, call: Call) -> Obj:
    return structured(call, {"sum": arguments["a"] + arguments["b"]})


def echo(arguments: Obj, call: Call) -> Obj:
    return text(arguments["text"])


def fail(arguments: Obj, call: Call) -> Obj:
    return failure(arguments.get("message", "This tool always fails."))


def countdown(arguments: Obj, call: Call) -> Body:
    steps = int(arguments.get("steps", 3))
    delay = arguments.get("delay_ms", 0) / 1000
    for step in range(1, steps + 1):
        yield delay
        call.progress(step, steps, f"{steps - step} to go")
    return text(f"Counted down {steps} steps.")


def log(arguments: Obj, call: Call) -> Obj:
    levels = arguments.get("levels", list(LEVELS))
    message = arguments.get("message", "Hello from the demo server.")
    for level in levels:
        call.log(level, {"message": message})
    return text(f"Logged at {len(levels)} levels: {', '.join(levels)}.")


def ask_model(arguments: Obj, call: Call) -> Body:
    words = yield from sample_from_model(arguments["question"])
    return text(f"The model answered: {words}")


def ask_user(arguments: Obj, call: Call) -> Body:
    words = yield from confirm_with_user(
        arguments["question"], with_mode=call.knows(versions.V2025_11_25)
    )
    return text(words)


def list_roots(arguments: Obj, call: Call) -> Body:
    uris = yield from list_client_roots()
    return text("\n".join(uris) if uris else "The client has no roots.")


def read_file(arguments: Obj, call: Call) -> Obj:
    return text(call.world.folder.read(arguments["path"]))


def write_file(arguments: Obj, call: Call) -> Obj:
    size = call.world.folder.write(arguments["path"], arguments["text"])
    return text(f"Wrote {size} bytes to {arguments['path']}.")


def list_files(arguments: Obj, call: Call) -> Obj:
    names = call.world.folder.names(arguments.get("folder", ""))
    return text("\n".join(names) if names else "There are no files.")


def weather(arguments: Obj, call: Call) -> Obj:
    """Made up, but the same for the same city every time."""
    city = arguments["city"]
    unit = arguments.get("unit", "celsius")
    seed = sum(city.encode())
    celsius = seed % 36 - 5
    value = celsius if unit == "celsius" else celsius * 9 / 5 + 32
    report = {
        "city": city,
        "conditions": _CONDITIONS[seed % len(_CONDITIONS)],
        "temperature": {"value": value, "unit": unit},
        "wind": {"speed_kmh": seed % 60, "direction": _DIRECTIONS[seed % len(_DIRECTIONS)]},
    }
    return structured(call, report)


def image(arguments: Obj, call: Call) -> Obj:
    return {"content": [{"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}]}


def link(arguments: Obj, call: Call) -> Obj:
    if call.knows(versions.V2025_06_18):
        resource = describe_resource(GREETING_URI, call.version)
        return {"content": [{"type": "resource_link", **resource}]}
    if "resources" in call.world.options.hide:
        return text(GREETING_URI)
    contents = read_resource(GREETING_URI, call.world)
    return {"content": [{"type": "resource", "resource": contents}]}


def slow(arguments: Obj, call: Call) -> Body:
    seconds = arguments["seconds"]
    yield seconds
    return text(f"Waited {seconds} seconds.")


def bump(arguments: Obj, call: Call) -> Obj:
    return text(f"The counter is now {call.world.bump()}.")


def toggle_tool(arguments: Obj, call: Call) -> Obj:
    assert call.session is not None, "offered in the handshake era only"
    offered = call.session.toggle_extra()
    return text(f"The tool extra is {'now' if offered else 'no longer'} offered.")


def extra(arguments: Obj, call: Call) -> Obj:
    return text("The extra tool was called.")
