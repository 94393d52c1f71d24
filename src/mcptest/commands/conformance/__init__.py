"""`mcptest conformance`: put a client or a server through the scenarios of the official suite.

This is about scenarios and checks; for the rules of the specification see `mcptest compliance`.
"""
