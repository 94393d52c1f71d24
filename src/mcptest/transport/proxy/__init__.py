"""Sitting between a client and a server: on stdio (`pipes`) or on loopback (`http`).

Bytes go first: they are passed on before a copy of them is looked at, and nothing that is found in
the copy touches the stream.
"""
