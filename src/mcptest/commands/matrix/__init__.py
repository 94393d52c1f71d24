"""`mcptest matrix`: one suite over several servers, as a table."""
