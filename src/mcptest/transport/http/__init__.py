"""A client of HTTP servers that sees every byte: connections, requests, responses, streams.

`exchanges` runs many requests at once over the connections of a pool and tells each as records.
`transports` has the two transports of MCP on top of it.
"""
