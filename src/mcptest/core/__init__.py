"""Frozen values that every room shares. No I/O here, and nothing heavier than msgspec.

A message (`message`), a record of a capture (`capture`), a revision of the specification
(`revision`), an error for people (`errors`) and a deadline (`limits`) mean the same everywhere.
A value knows its own invariants and nothing else. What a peer said goes through `safe_text` before
a person sees it, and secrets (`redaction`, `masking`) are hidden wherever something is
written.
"""
