"""`mcptest record`: keep everything that a client and a server say to each other."""
