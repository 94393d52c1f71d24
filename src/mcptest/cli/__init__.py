"""The command line: one small file per command, which parses, calls and prints."""
