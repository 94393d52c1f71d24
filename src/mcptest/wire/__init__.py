"""Bytes to frames to messages, without I/O: no sockets, no sleeping, no clock."""
