"""`mcptest snapshot`: the answers of a suite's tests as golden files."""
