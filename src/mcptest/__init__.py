"""mcptest: tells, with proof, whether an MCP server or client works and conforms."""

__version__ = "0.1.0"
