"""mcptest as an MCP server, for agents: what `mcptest mcp` offers.

An agent is hostile input: what it passes was perhaps written by a page that it has read. So
nothing is started, written or read that the command line did not allow, and no word of an agent
ever names a program or a host. The protocol is spoken by the machinery of `mcptest.servers.demo`.
"""
