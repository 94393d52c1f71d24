"""The shape of every message in every revision: one table, a revision window per member.

`vocabulary` has the words in which shapes are written, `methods` the table of methods, and
`checker` answers with JSON pointers what does not fit.
"""
