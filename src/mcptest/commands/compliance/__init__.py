"""`mcptest compliance`: hold a server or a capture against the rules of the specification.

This is about rules and grades; for the scenarios of the official suite see `mcptest conformance`.
"""
