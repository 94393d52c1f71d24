"""What is read when it is first needed: once, by one thread at a time."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from mcptest.core.loading import loaded_once


def test_a_file_is_loaded_once_by_whichever_threads_need_it() -> None:
    loads: list[int] = []
    together = threading.Barrier(8)

    @loaded_once
    def value() -> list[int]:
        loads.append(1)
        return loads

    def ask() -> None:
        together.wait()
        assert value() is loads

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]


def test_a_load_that_fails_is_tried_again() -> None:
    answers = iter([ValueError("not yet"), 7])

    @loaded_once
    def value() -> int:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return int(answer)

    with pytest.raises(ValueError, match="not yet"):
        value()
    assert value() == 7


RACE = """
import sys, threading
from mcptest.schema.message_shapes import message_table
from mcptest.rules.corpus.probes import all_probes
from mcptest.rules.known_sdks import known_sdks
from mcptest.rules.migration import migration_items

sys.setswitchinterval(1e-6)
loaders = (message_table, all_probes, known_sdks, migration_items) * 3
together = threading.Barrier(len(loaders))

def work(load):
    together.wait()
    load()

threads = [threading.Thread(target=work, args=(load,)) for load in loaders]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_that_need_our_tables_at_once_do_not_crash_the_process() -> None:
    """Where each learned the types of its table by itself, one in a few such processes crashed."""
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, timeout=240)
        assert (done.returncode, done.stderr) == (0, b"")
