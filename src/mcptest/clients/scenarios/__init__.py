"""The scenarios themselves, one module per subject; `mcptest.clients.catalogue` lists them."""
