"""The shape of every message in every revision: one table, a revision window per member.

`messages.yml` is the table, `table` reads it, and `checker` answers with JSON pointers what does
not fit.
"""
