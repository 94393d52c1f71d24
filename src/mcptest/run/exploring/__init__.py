"""Exploring a server that nobody wrote a test for: who is asked, what is safe, what came of it."""
