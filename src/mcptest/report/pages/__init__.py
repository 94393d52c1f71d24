"""Programs that write the generated pages of `docs/`; `--check` compares instead of writing."""
