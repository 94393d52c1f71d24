"""The views of a judged server: terminal, Markdown, JSON and findings for code scanning."""
