"""Scenarios for clients: a script for the server, and checks over what was captured of a client.

One module for each subject. `runner` starts the server and then the client,
`judged_client` makes rows of what was `seen`; nothing is decided before the client has left.
"""
