"""`mcptest completion`: completing command lines in a shell."""
