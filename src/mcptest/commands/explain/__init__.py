"""`mcptest explain`: one rule, or one code of the linter or of an audit, in full."""
