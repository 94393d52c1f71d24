"""Every scenario for servers: what is done to the server, and the checks that judge what came."""
