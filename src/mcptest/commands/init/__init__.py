"""`mcptest init`: a first suite; with a server, one that passes at once."""
