"""The two roles of MCP: a client in both eras, and the demo server. No verdicts here."""
