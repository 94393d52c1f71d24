"""`mcptest generate`: a starter test for each tool, prompt and resource."""
