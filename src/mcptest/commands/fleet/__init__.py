"""Judging every server of a client configuration: each in its own process, here or elsewhere."""
