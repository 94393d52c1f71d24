"""A server of the official Python SDK with fixtures of the scenario suite: `PORT` over HTTP."""

from __future__ import annotations

import base64
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()
server = MCPServer("python-sdk-fixtures", version="1.0.0")


def embedded(uri: str = "test://embedded-resource") -> EmbeddedResource:
    content = TextResourceContents(uri=uri, mime_type="text/plain", text="an embedded text")
    return EmbeddedResource(type="resource", resource=content)


@server.tool(structured_output=False)
def test_simple_text() -> str:
    """Answers with a text."""
    return "a simple text"


@server.tool(structured_output=False)
def test_image_content() -> ImageContent:
    """Answers with an image."""
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


@server.tool(structured_output=False)
def test_audio_content() -> AudioContent:
    """Answers with a sound."""
    return AudioContent(type="audio", data=SOUND, mime_type="audio/wav")


@server.tool(structured_output=False)
def test_embedded_resource() -> EmbeddedResource:
    """Answers with an embedded resource."""
    return embedded()


@server.tool(structured_output=False)
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answers with several kinds of content."""
    text = TextContent(type="text", text="and a text")
    return [text, ImageContent(type="image", data=PIXEL, mime_type="image/png"), embedded()]


@server.tool(structured_output=False)
def test_error_handling() -> str:
    """Always fails."""
    raise ValueError("this tool always fails")


@server.tool(structured_output=False)
async def test_tool_with_progress(ctx: Context) -> str:
    """Tells its progress three times."""
    for number in (0, 50, 100):
        await ctx.report_progress(number, 100)
    return "done"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "a static text"


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002  the name stands in the template
    """Has its id in its content."""
    return f'{{"id": "{id}"}}'


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "a simple prompt"


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"the arguments are {arg1} and {arg2}"


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
