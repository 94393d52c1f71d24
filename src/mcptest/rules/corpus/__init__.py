"""The corpora: for each revision what a server is asked and what must come back, as data."""
