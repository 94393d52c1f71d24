"""Frozen values that every layer shares. No I/O here, and nothing heavier than msgspec."""
