"""Scenarios for clients: a script for the server, and checks over what was captured of a client.

One module for each subject. `client_runner` starts the server and then the client,
`client_judging` makes rows of what was `seen`; nothing is decided before the client has left.
"""
