"""What is kept of one session of a property: never more than there is room for."""

from __future__ import annotations

from mcptest.model.capture import Frame
from mcptest.run.properties.reel import Reel

LOG = Frame(sender="server", raw=b'{"jsonrpc":"2.0","method":"notifications/message"}')


def test_a_flood_is_cut_off_and_counted() -> None:
    reel = Reel("a")
    for _ in range(100_000):
        reel(LOG)
    assert len(reel.beginning) < 10_000
    assert len(reel.beginning) + reel.dropped == 100_000


def test_nothing_is_kept_after_a_gap() -> None:
    reel = Reel("a")
    large = Frame(sender="server", raw=b'"%b"' % (b"x" * 20_000_000))
    for record in (large, large, LOG):
        reel(record)
    assert (reel.beginning, reel.dropped) == ([large], 2)


def test_one_message_of_any_size_is_kept() -> None:
    reel = Reel("a")
    reel(Frame(sender="server", raw=b'"%b"' % (b"x" * 40_000_000)))
    assert reel.dropped == 0


def test_the_next_example_has_all_the_room() -> None:
    reel = Reel("a")
    reel.has_begun()
    for _ in range(3):
        for _ in range(3_000):
            reel(LOG)
        assert (len(reel.example), reel.dropped) == (3_000, 0)
        reel.next_example()
