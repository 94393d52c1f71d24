"""An excerpt of a long capture: what is read of a flood, and that places stay what they are."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mcptest.core.capture import AnyRecord, Closed, Frame, Opened, Trouble
from mcptest.core.limits import Deadline
from mcptest.transport.capture_file import Excerpt, open_capture
from mcptest.wire.capture_forms import encode_records

OPENED = Opened(server_label="a", transport="stdio")
FLOOD = 30_000
SMALL = Excerpt(first=100, least=10, telling=20, last=5)


def log(number: int) -> Frame:
    raw = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}' % number
    return Frame(t=float(number), sender="server", raw=raw)


CALL = Frame(sender="client", raw=b'{"jsonrpc":"2.0","id":9,"method":"tools/call"}')
ANSWER = Frame(sender="server", raw=b'{"jsonrpc":"2.0","id":9,"result":{}}')
LOST = Trouble(error="timeout", detail="no answer")


def written(path: Path, *sessions: Sequence[AnyRecord]) -> str:
    records = [record for session in sessions for record in session]
    path.write_bytes(b"".join(encode_records(records)))
    return str(path)


def read(path: str, excerpt: Excerpt | None = None) -> list[list[tuple[int, Any]]]:
    return [list(source.records) for source in open_capture(path, excerpt)]


def flood(*inside: AnyRecord) -> list[AnyRecord]:
    half = [log(number) for number in range(FLOOD)]
    return [OPENED, *half, *inside, *half, Closed()]


def test_a_short_session_is_read_as_a_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [OPENED, *map(log, range(50)), CALL, ANSWER, Closed()])
    assert read(path, SMALL) == read(path)


def test_of_a_flood_the_beginning_what_was_asked_and_the_end_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", flood(CALL, ANSWER, LOST))
    [found], [whole] = read(path, SMALL), read(path)
    assert set(found) <= set(whole), "each at its own place"
    places = [place for place, _ in found]
    assert places[:100] == list(range(100))
    assert [record for _, record in found[100:103]] == [CALL, ANSWER, LOST]
    assert places[-5:] == [place for place, _ in whole[-5:]]
    assert len(found) == 100 + 3 + 5


def test_beyond_what_is_searched_only_the_end_is_read_at_its_places(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", flood(*[log(0)] * FLOOD, CALL, ANSWER, LOST))
    excerpt = msgspec.structs.replace(SMALL, searched=1_000_000)
    [found], [whole] = read(path, excerpt), read(path)
    assert set(found) <= set(whole)
    assert found[100:] == whole[-5:]


def test_what_is_wanted_is_read_wherever_it_stands(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", flood())
    wanted = Excerpt(first=100, last=5, wanted=({20_000, 41_000},))
    [found], [whole] = read(path, wanted), read(path)
    assert {whole[20_000], whole[41_000]} <= set(found)


def test_a_flood_of_questions_leaves_room_for_the_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", [OPENED, *[CALL, ANSWER] * FLOOD, LOST, Closed()])
    [found] = read(path, SMALL)
    assert [record for _, record in found[-2:]] == [LOST, Closed()]
    assert found[-1][0] == 2 * FLOOD + 2
    assert len(found) <= 100 + 20 + 5


def test_each_session_of_a_file_has_its_beginning_and_its_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", flood(CALL), flood(ANSWER), [OPENED, CALL, ANSWER])
    first, second, third = read(path, SMALL)
    assert (len(first), len(second)) == (100 + 1 + 5, 10 + 1 + 5)
    assert [place for place, _ in third] == [0, 1, 2]
    assert second[-1] == (2 * FLOOD + 2, Closed())


def test_a_record_that_is_too_long_is_left_out_and_counted(tmp_path: Path) -> None:
    large = Frame(sender="server", raw=b'{"data":"%b"}' % (b"x" * 3_000_000))
    records = [OPENED, CALL, large, ANSWER, large, Closed()]
    path = written(tmp_path / "a.jsonl", records)
    [found] = read(path, Excerpt(longest=1_000_000))
    assert found == [(0, OPENED), (1, CALL), (3, ANSWER), (5, Closed())]
    [found] = read(path, Excerpt())
    assert found == list(enumerate(records))


def test_a_line_that_a_crash_tore_ends_an_excerpt_too(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "a.jsonl", flood()[:-1]))
    path.write_bytes(path.read_bytes()[:-10])
    [found], [whole] = read(str(path), SMALL), read(str(path))
    assert found[-1] == whole[-1]


def test_of_a_long_conversation_more_is_read_than_of_a_flood(tmp_path: Path) -> None:
    talk = [OPENED, *[CALL, ANSWER] * 1_200, Closed()]
    assert read(written(tmp_path / "talk.jsonl", talk), Excerpt()) == [list(enumerate(talk))]
    [found] = read(written(tmp_path / "flood.jsonl", flood(CALL, ANSWER)), Excerpt())
    assert len(found) == 1_000 + 2 + 200


def test_what_was_asked_in_a_flood_has_a_bound_in_bytes(tmp_path: Path) -> None:
    large = Frame(sender="server", raw=b'{"id":9,"result":{"data":"%b"}}' % (b"x" * 100_000))
    path = written(tmp_path / "a.jsonl", [OPENED, *[large] * 50, Closed()])
    [found] = read(path, Excerpt(first=1, least=1, first_bytes=1_000_000, last=1))
    assert len(found) == 1 + 10 + 1


def test_when_the_time_is_up_nothing_more_is_looked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", flood(CALL, ANSWER, LOST))
    [found], [whole] = (
        read(path, msgspec.structs.replace(SMALL, until=Deadline.after(0))),
        read(path),
    )
    assert found == [*whole[:100], *whole[-5:]]


def test_whoever_reads_slowly_gets_only_the_beginning_and_the_end(tmp_path: Path) -> None:
    """In the middle of a block, too: a page has to be made in time on a busy machine."""
    asked = [one for _ in range(500) for one in (CALL, ANSWER)]
    path = written(tmp_path / "a.jsonl", [OPENED, *asked, Closed()])
    late = threading.Event()

    class Watched(Deadline, frozen=True):
        @property
        def expired(self) -> bool:
            return late.is_set()

    places = []
    for source in open_capture(path, msgspec.structs.replace(SMALL, until=Watched(0.0, 1.0))):
        for place, _ in source.records:
            places.append(place)
            if place == 105:
                late.set()
    assert places[:106] == list(range(106))
    assert places[-5:] == list(range(1002 - 5, 1002))
    assert len(places) < 106 + 5 + 5
