"""`mcptest property`: generated messages and conversations, judged and shrunk."""
