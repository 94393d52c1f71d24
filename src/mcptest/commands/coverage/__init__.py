"""`mcptest coverage`: which items of a live server a suite asserts on."""
