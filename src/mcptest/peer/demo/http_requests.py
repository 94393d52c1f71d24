"""HTTP/1.1 requests from bytes, without sockets: strict, and bounded in every direction."""

from __future__ import annotations

from mcptest.peer.demo.protocol import MAX_MESSAGE_BYTES

TYPE_CHECKING = False  # see protocol
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_HEAD_BYTES = 64 * 1024
MAX_CHUNK_LINE = 1024

_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class BadRequest(Exception):  # noqa: N818  an answer, not a defect
    """The bytes can't be used; the connection is answered with this status and then closed."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Request:
    """One request. Names of headers are in lower case; repeated ones are joined with a comma."""

    def __init__(self, method: str, target: str, version: str, headers: dict[str, str]) -> None:
        self.method = method
        self.target = target
        self.path, _, self.query = target.partition("?")
        self.headers = headers
        self.header_lines: tuple[tuple[str, str], ...] = tuple(headers.items())
        """Names and values in the order and spelling in which they came."""
        self.body = b""
        options = headers.get("connection", "").lower()
        self.keep_alive = version == "HTTP/1.1" and "close" not in options
        self.chunks_allowed = version == "HTTP/1.1"

    def header(self, name: str) -> str | None:
        return self.headers.get(name)


class RequestReader:
    """Takes bytes as they come and gives whole requests."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._seen = 0
        """How far the end of the head was looked for in vain."""
        self._request: Request | None = None
        self._body: _Body | None = None
        self.continue_wanted = False
        """The client waits for a `100 Continue` before it sends the body."""

    @property
    def buffered(self) -> int:
        return len(self._data)

    @property
    def in_progress(self) -> bool:
        return self._request is not None or bool(self._data)

    @property
    def beginning(self) -> bytes:
        """How what is held begins, for a message about it."""
        return bytes(self._data[:200])

    @property
    def unfinished(self) -> Request | None:
        """The request whose head was read and whose body is still to come."""
        return self._request

    @property
    def held(self) -> int:
        """Bytes that wait for the rest of their request."""
        return len(self._data) + (len(self._body.content) if self._body is not None else 0)

    def feed(self, data: bytes) -> None:
        self._data += data

    def next(self) -> Request | None:
        """The next whole request, or None until more has come. Raises BadRequest."""
        if self._request is None and not self._read_head():
            return None
        request, body = self._request, self._body
        assert request is not None
        assert body is not None
        if not body.take(self._data):
            return None
        request.body = bytes(body.content)
        self._request = self._body = None
        self.continue_wanted = False
        return request

    def _read_head(self) -> bool:
        while self._data.startswith(b"\r\n"):  # allowed before a request line
            del self._data[:2]
            self._seen = 0
        end = self._data.find(b"\r\n\r\n", max(0, self._seen - 3))
        if end < 0:
            self._seen = len(self._data)
            if self._seen > MAX_HEAD_BYTES:
                raise BadRequest(431, "the head of the request is too large")
            return False
        if end > MAX_HEAD_BYTES:
            raise BadRequest(431, "the head of the request is too large")
        head = bytes(self._data[:end]).decode("latin-1")
        del self._data[: end + 4]
        self._seen = 0
        self._request = _parse_head(head)
        self._body = _body_of(self._request)  # where it can't be read, `unfinished` says whose
        self.continue_wanted = self._request.headers.get("expect", "").lower() == "100-continue"
        return True


class _Body:
    """Collects a body of known length."""

    def __init__(self, length: int) -> None:
        if length > MAX_MESSAGE_BYTES:
            raise BadRequest(413, f"the body is larger than {MAX_MESSAGE_BYTES} bytes")
        self._left = length
        self.content = bytearray()

    def take(self, data: bytearray) -> bool:
        """Take what belongs to the body from the front of `data`; True once it is whole."""
        part = data[: self._left]
        self.content += part
        self._left -= len(part)
        del data[: len(part)]
        return self._left == 0


class _ChunkedBody(_Body):
    """Collects a body that comes in chunks."""

    def __init__(self) -> None:
        super().__init__(0)
        self._state = "size"

    def take(self, data: bytearray) -> bool:
        while self._state != "done":
            if self._state == "data":
                if not super().take(data):
                    return False
                self._state = "data end"
            line = _take_line(data)
            if line is None:
                return False
            self._read_line(line)
        return True

    def _read_line(self, line: bytes) -> None:
        if self._state == "size":
            size = line.partition(b";")[0].strip()
            if (
                not size
                or len(size) > 8
                or any(byte not in b"0123456789abcdefABCDEF" for byte in size)
            ):
                raise BadRequest(400, "a chunk has no valid size")
            self._left = int(size, 16)
            if len(self.content) + self._left > MAX_MESSAGE_BYTES:
                raise BadRequest(413, f"the body is larger than {MAX_MESSAGE_BYTES} bytes")
            self._state = "data" if self._left else "trailers"
        elif self._state == "data end":
            if line:
                raise BadRequest(400, "a chunk is longer than its size")
            self._state = "size"
        elif not line:
            self._state = "done"


def _take_line(data: bytearray) -> bytes | None:
    end = data.find(b"\r\n", 0, MAX_CHUNK_LINE)
    if end < 0:
        if len(data) > MAX_CHUNK_LINE:
            raise BadRequest(400, "a line of a chunked body is too long")
        return None
    line = bytes(data[:end])
    del data[: end + 2]
    return line


def _parse_head(head: str) -> Request:
    first, *lines = head.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not _is_token(parts[0]) or not parts[1].startswith("/"):
        raise BadRequest(400, "the request line is malformed")
    method, target, version = parts
    if version not in {"HTTP/1.1", "HTTP/1.0"}:
        raise BadRequest(505, "only HTTP/1.1 is spoken here")
    pairs = tuple(_parse_headers(lines))
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    if version == "HTTP/1.1" and "host" not in headers:
        raise BadRequest(400, "the Host header is missing")
    request = Request(method, target, version, headers)
    request.header_lines = pairs
    return request


def _parse_headers(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, colon, value = line.partition(":")
        value = value.strip(" \t")
        if not colon or not _is_token(name) or "\0" in value or "\n" in value or "\r" in value:
            raise BadRequest(400, "a header is malformed")
        yield name, value


def _body_of(request: Request) -> _Body:
    encoding = request.headers.get("transfer-encoding")
    length = request.headers.get("content-length")
    if encoding is not None:
        if length is not None or encoding.lower() != "chunked":
            raise BadRequest(400, "the length of the body is unclear")
        return _ChunkedBody()
    if length is None:
        return _Body(0)
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise BadRequest(400, "Content-Length is not a number")
    return _Body(int(length))


def _is_token(name: str) -> bool:
    return bool(name) and all(letter in _TOKEN for letter in name)
