"""The registry of rules and the judging of captures. Pure functions, no I/O."""
