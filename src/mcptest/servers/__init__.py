"""Being a server: the demo, scripted servers for testing clients, mocks and replays.

All of them stand on the loop and the listener of `transport` and on one kind of HTTP connection,
and none of them judges: what a client sent is recorded, and judged by others from the capture.
"""
