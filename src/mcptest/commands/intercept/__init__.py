"""`mcptest intercept`: sit between an agent and a server, then check the calls of the agent."""
