"""`mcptest serve`: be a server: the demo, a mock, a recording or a scenario."""
