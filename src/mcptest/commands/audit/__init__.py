"""`mcptest audit`: discover what a server offers, call what is safe, classify, score."""
