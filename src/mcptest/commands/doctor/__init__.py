"""`mcptest doctor`: what will break when a server moves to another revision.

`run` finds out what the server speaks and judges each step on its way; `examination` is the session
that the probes share, and the probes stand in modules by era and transport.
"""
