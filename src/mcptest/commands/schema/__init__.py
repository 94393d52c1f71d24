"""`mcptest schema`: the JSON Schema of a file format."""
