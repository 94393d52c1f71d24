"""Stands for a program that a warm process runs: `python -I -S launch_warm.py SOCKET PROGRAM …`.

The program gets our arguments, folder, environment and descriptors. Signals are passed on, we end
as it ends, and if we are killed, so is it. Nothing is imported that would take time.
"""

import marshal
import posix
import sys
from _signal import SIG_DFL, SIGHUP, SIGINT, SIGTERM, signal
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from array import array

STANDARD = (0, 1, 2)


def main(path: str, words: list[str]) -> None:
    link = socket(AF_UNIX, SOCK_STREAM)
    link.connect(path)
    order = marshal.dumps((words, posix.getcwdb(), dict(posix.environ)))
    given = [(SOL_SOCKET, SCM_RIGHTS, array("i", STANDARD))]
    link.sendmsg([len(order).to_bytes(8, "little")], given)
    link.sendall(order)
    for number in (SIGHUP, SIGINT, SIGTERM):
        signal(number, lambda number, _frame: link.send(bytes([number])))
    for descriptor in STANDARD:  # who closes its end of a pipe is seen to have closed it
        posix.close(descriptor)
    told = link.recv(8)
    code = int.from_bytes(told, "little", signed=True) if told else 70
    if code < 0:
        if -code in (SIGHUP, SIGINT, SIGTERM):
            signal(-code, SIG_DFL)
        posix.kill(posix.getpid(), -code)
    posix._exit(code)


main(sys.argv[1], sys.argv[2:])
