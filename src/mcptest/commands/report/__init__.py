"""`mcptest report`: stored runs and captures, rendered again; shards are merged."""
