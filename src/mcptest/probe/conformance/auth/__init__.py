"""Scenarios about authorization: the server asks for tokens, and another one gives them out."""
