"""The server role for testing clients: follows a script, may misbehave, records everything."""
