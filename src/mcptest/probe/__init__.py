"""Driving peers: what several commands do to a server or a client, short of printing it.

A command parses options and shows results; what it does in between lives here when another command,
the pytest plugin or the fleet does it too: running suites (`suites`), judging a live server by the
corpora (`compliance`), the scenario suite (`conformance`), property tests (`properties`), auditing,
and touring a server.
"""
