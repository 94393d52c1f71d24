"""The only code that opens a pipe, a process or a socket. It knows no MCP method."""
