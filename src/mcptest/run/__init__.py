"""Driving peers: what is asked of a server, in which order, and the events that tell of it."""
