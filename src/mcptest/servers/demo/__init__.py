"""The demo server: a correct MCP server in every revision, with the standard library only.

It is the reference that rules are checked against, so it must conform in each revision it speaks.
Nothing here imports more than start-up needs; see `__main__` for how it is run.
"""
