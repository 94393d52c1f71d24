"""`mcptest watch`: rerun what changed, and show which outcomes flipped.

`file_events` tells of changes, `run` reruns the tests that they concern, and
`view` draws the screen.
"""
