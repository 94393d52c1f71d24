"""The scenario suite held against sound and broken peers, and against the official suite."""
