"""The command line: one folder for each command, and what several of them share beside it.

`app` has the table of commands as data and imports only the one that was named. A command's
`cli.py` declares its options and runs it; what only this command does stands beside it in the same
folder. Commands don't import each other.
"""
