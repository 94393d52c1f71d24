"""Scenarios for testing clients: what the server does, and what then judges the capture."""
