"""One YAML file as nodes with places; what is wrong with it becomes a problem, not a traceback."""

from __future__ import annotations

from pathlib import Path

from mcptest.suite.problems import Source
from mcptest.suite.scalars import is_nothing
from mcptest.suite.yaml_nodes import LARGEST_FILE, Node, Scalar, YamlError, decode, read_nodes
from mcptest.transport.input_file import read_bounded


def read_yaml(path: Path, shown_as: str = "") -> tuple[Node | None, Source]:
    """The document of a file, or None for one that is empty or can't be read: see the source."""
    name = shown_as or str(path)
    try:
        data = read_bounded(path, LARGEST_FILE, pipes=False, cut=True)
    except OSError as error:
        source = Source(name)
        source.report(f"can't be read: {error.strerror or error}", 1, 1)
        return None, source
    return read_yaml_bytes(data, name)


def read_yaml_bytes(data: bytes, name: str) -> tuple[Node | None, Source]:
    """The document of these bytes, and the source that problems are reported to."""
    try:
        text = decode(data)
    except YamlError as error:
        source = Source(name, "" if error.whole_file else data.decode("utf-8", "replace"))
        return None, _told(source, error)
    source = Source(name, text)
    try:
        root = read_nodes(text)
    except YamlError as error:
        return None, _told(source, error)
    if isinstance(root, Scalar) and is_nothing(root):
        root = None
    return root, source


def _told(source: Source, error: YamlError) -> Source:
    source.report(error.message, error.line, error.column, hint=error.hint, width=error.width)
    return source
