"""Rendering of verdicts that were already reached. Nothing is run again here."""
