"""`mcptest ci`: `run` in CI, with gates, a step summary and annotations."""
