"""`mcptest run`: tests in YAML against real servers."""
