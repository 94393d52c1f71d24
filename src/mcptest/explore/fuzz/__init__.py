"""Inputs that are almost valid, what an answer to them must not hold, and making them small."""
