"""Being a client: meeting a server, talking to it, and knowing what may be asked of it.

`server_spec` turns the string that names a server into a target. `meeting` finds out which revision
is spoken; `lifecycle` has an object for each of the two eras behind one interface, so nothing after
the meeting asks for the era. `Client` (`client`) is that interface over any transport. Whoever
talks to a server does it in a `LiveSession` (`live`): it starts or connects, meets, comes back
after a crash or a hang, keeps the `Tape` (`tape`) and stops at the deadline; only there a client is
made.
`pages` walks through all pages of a list, and `tool_safety` has the one answer to the question
whether a tool may be called. No verdicts here.
"""
