"""Making inputs: what to send to a peer that nobody wrote a test for."""
