"""`mcptest lint`: can a model use what this server offers?"""
