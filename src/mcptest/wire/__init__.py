"""Bytes to messages and back, without I/O: no sockets, no sleeping, no clock.

A transport feeds bytes to a reader (`lines`, `sse`, `http1`) and gets back frames, or the `fault`
for which it can't read on. `envelope` decodes a frame into a message as it was seen: what is wrong
with it is reported, never raised and never repaired. `correlation` says which answer belongs to
which request. `capture_forms` reads and writes both forms of a capture.
"""
