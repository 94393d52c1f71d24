"""What all connections to one server share: content, options, counter and the folder of files."""

from __future__ import annotations

import errno
import os
import stat
from itertools import count, islice

from mcptest.servers.demo import versions
from mcptest.servers.demo.exchange import ToolFailure
from mcptest.servers.demo.offers import demo_content

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcptest.servers.demo.jsonrpc import Obj
    from mcptest.servers.demo.offers import Content
    from mcptest.servers.demo.start_options import Options
    from mcptest.servers.demo.stateless_era import Listening
    from mcptest.servers.demo.tasks import Task
    from mcptest.transport.loop import Loop

MAX_FILE_BYTES = 1024 * 1024
MAX_MEMORY_BYTES = 8 * MAX_FILE_BYTES
MAX_NAME_BYTES = 255
MAX_LISTED = 1_000
MAX_DEPTH = 32

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for its other end.
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Folder:
    """The root of the file tools: the folder that was named."""

    def __init__(self, root: str) -> None:
        self._path = root

    def read(self, path: str) -> str:
        *folders, name = _components(path)
        with self._open_file(folders, name, os.O_RDONLY, path) as file:
            _must_be_a_small_file(file, path)
            with open(file, "rb", closefd=False) as stream:
                content = stream.read(MAX_FILE_BYTES)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ToolFailure(f"{path} is not a text file") from None

    def write(self, path: str, text: str) -> int:
        content = _small(text)
        *folders, name = _components(path)
        with self._open_file(folders, name, os.O_WRONLY | os.O_CREAT, path) as file:
            _must_be_a_small_file(file, path)
            try:
                with open(file, "wb", closefd=False) as stream:
                    stream.truncate(0)
                    stream.write(content)
            except OSError as error:
                raise ToolFailure(f"writing failed: {error.strerror}") from None
        return len(content)

    def names(self, path: str) -> list[str]:
        folders = _components(path) if path else []
        with _Descriptor(self._open_folder(folders, path)) as folder:
            names = _walk(folder, "/".join([*folders, ""]), MAX_DEPTH)
            return list(islice(names, MAX_LISTED))

    def _open_file(self, folders: list[str], name: str, flags: int, path: str) -> _Descriptor:
        with _Descriptor(self._open_folder(folders, path)) as parent:
            return _Descriptor(_open(name, flags | _FILE, parent, path))

    def _open_folder(self, folders: list[str], path: str) -> int:
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailure(f"the root folder can't be opened: {error.strerror}") from None
        for name in folders:
            with _Descriptor(folder) as parent:
                folder = _open(name, _FOLDER, parent, path)
        return folder


class MemoryFolder:
    """The root where none was named: it is never on disk, so a killed server leaves nothing."""

    def __init__(self) -> None:
        self._files = {"welcome.txt": "Hello from the mcptest demo server.\n"}

    def read(self, path: str) -> str:
        name = self._name(path)
        if name not in self._files:
            raise _failed(path, errno.ENOENT)
        return self._files[name]

    def write(self, path: str, text: str) -> int:
        size = len(_small(text))
        name = self._name(path)
        others = [file for known, file in self._files.items() if known != name]
        if len(others) == MAX_LISTED or sum(map(len, others)) + size > MAX_MEMORY_BYTES:
            raise _failed(path, errno.ENOSPC)
        self._files[name] = text
        return size

    def names(self, path: str) -> list[str]:
        if path:
            raise _failed(path, errno.ENOTDIR if self._name(path) in self._files else errno.ENOENT)
        return sorted(self._files)

    def _name(self, path: str) -> str:
        """A file's name: there are no folders in this one."""
        *folders, name = _components(path)
        if folders:
            raise _failed(path, errno.ENOTDIR if folders[0] in self._files else errno.ENOENT)
        if len(name.encode()) > MAX_NAME_BYTES:
            raise _failed(path, errno.ENAMETOOLONG)
        return name


class _Descriptor:
    """Closes a descriptor at the end of a block."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *exception: object) -> None:
        os.close(self._fd)


def _small(text: str) -> bytes:
    content = text.encode()
    if len(content) > MAX_FILE_BYTES:
        raise ToolFailure(f"a file holds at most {MAX_FILE_BYTES} bytes")
    return content


def _failed(path: str, number: int) -> ToolFailure:
    return ToolFailure(f"{path[:200]}: {os.strerror(number)}")


def _components(path: str) -> list[str]:
    parts = path.split("/")
    if len(parts) > MAX_DEPTH or any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise ToolFailure(f"not a path inside the root folder: {path[:200]!r}")
    return parts


def _open(name: str, flags: int, parent: int, path: str) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=parent)
    except OSError as error:
        reason = error.strerror
        if error.errno in {errno.ELOOP, errno.EMLINK}:
            reason = "symbolic links are not followed"
        raise ToolFailure(f"{path[:200]}: {reason}") from None


def _must_be_a_small_file(file: int, path: str) -> None:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailure(f"{path} is not a file")
    if status.st_size > MAX_FILE_BYTES:
        raise ToolFailure(f"{path} is larger than {MAX_FILE_BYTES} bytes")


def _walk(folder: int, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        kinds = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    for name, is_folder in kinds:
        if not is_folder:
            yield prefix + _showable(name)
        elif depth:
            try:
                inner = os.open(name, _FOLDER, dir_fd=folder)
            except OSError:
                continue  # gone, or not ours to read: it has no names to list
            with _Descriptor(inner) as fd:
                yield from _walk(fd, f"{prefix}{_showable(name)}/", depth - 1)


def _showable(name: str) -> str:
    """A name that is not UTF-8 on disk would not be UTF-8 on the wire either."""
    return name.encode(errors="surrogateescape").decode(errors="replace")


LIST_CHANGED: Obj = {"listChanged": True}
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
CORE_TASKS: Obj = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_SUBSCRIPTIONS = ("resources/subscribe", "resources/unsubscribe")
_METHODS_OF = {
    "tools": ("tools/list", "tools/call"),
    "resources": ("resources/list", "resources/templates/list", "resources/read", *_SUBSCRIPTIONS),
    "prompts": ("prompts/list", "prompts/get"),
    "completions": ("completion/complete",),
    "logging": ("logging/setLevel",),
    "subscribe": _SUBSCRIPTIONS,
}


def hidden_methods(parts: frozenset[str]) -> frozenset[str]:
    """The methods of the parts that the server does without."""
    return frozenset(method for part in parts for method in _METHODS_OF.get(part, ()))


class World:
    """Made once per process. Sessions and subscriptions register to hear of changed resources."""

    def __init__(self, options: Options, loop: Loop, content: Content | None = None) -> None:
        self.options = options
        self.handshake = options.handshake
        self.stateless = options.stateless
        """The revisions of each era that are spoken."""
        self.loop = loop
        self.folder = MemoryFolder() if options.root is None else Folder(options.root)
        self.counter: int = 0
        self.numbers = count(1)
        """Each is given out once."""
        self.secret = os.urandom(32)
        """Signs `requestState`; a state of another process is refused like a forged one."""
        self.tasks: dict[str, Task] = {}
        """Those of the stateless era, which belong to nobody's session."""
        self.hidden = hidden_methods(options.hide)
        self.content: Content = demo_content(options.offer) if content is None else content
        self.listening: dict[Listening, None] = {}
        self.watchers: dict[object, Callable[[str], None]] = {}
        """What is called when a resource was updated, by who wants to know."""

    def declared(self, version: str) -> Obj:
        """The capabilities that are told to a client of this revision."""
        stateless = versions.since(version, versions.V2026_07_28)
        # Only a fixture ever tells of a changed list where nothing may change on the side.
        quiet = stateless and "fixtures" not in self.options.offer
        changes: Obj = {} if quiet or "list-changed" in self.options.hide else LIST_CHANGED
        some: Obj = {
            "completions": {} if versions.since(version, versions.V2025_03_26) else None,
            "logging": {},
            "prompts": changes if "prompts" in self.content.changing else {},
            "resources": {} if "subscribe" in self.options.hide else {"subscribe": True},
            "tools": changes if "tools" in self.content.changing else {},
        }
        if "tasks" in self.options.offer:
            some["tasks"] = CORE_TASKS if version == versions.V2025_11_25 else None
            some["extensions"] = {TASKS_EXTENSION: {}} if stateless else None
        return {
            name: value
            for name, value in some.items()
            if value is not None and name not in self.options.hide
        }

    def bump(self) -> int:
        self.counter += 1
        for updated in tuple(self.watchers.values()):
            updated("demo://counter")
        return self.counter

    def announce(self, what: str) -> None:
        """Tell every subscription of the stateless era that a list changed, if it wants to know."""
        for listening in tuple(self.listening):
            listening.changed(what)

    def end_subscriptions(self) -> None:
        """Tell every open subscription of the stateless era that it is over."""
        for listening in tuple(self.listening):
            listening.end()
