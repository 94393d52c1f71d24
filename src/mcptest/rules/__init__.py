"""What must hold, and the judging of captures. Pure functions, no I/O.

A rule is one declaration (`declaration`) and one generator that is fed the steps of a session. It
says `saw` when the capture exercised it; without that there is no pass. `session` turns records
into steps, `judge` advances every rule over them in one pass. `corpus` holds what a live server is
asked and what must come back, revision by revision, as data.
"""
