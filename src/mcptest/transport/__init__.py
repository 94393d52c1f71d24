"""The only code that opens a pipe, a process or a socket. It knows no MCP method.

A transport (`base`) can't be made without a sink, which hears of every record before anybody else
does: the `recorder` is one. Everything waits on one deadline. `process` starts a server in a group
of its own and ends it with all that it left behind; `egress` is the one guard that every connection
passes; `files` writes files that are there whole or not at all. One `loop` and one `listener` are
under the proxies here and under every server of ours.
"""
