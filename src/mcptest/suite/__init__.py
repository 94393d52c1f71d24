"""Suites: YAML as typed values with their places, templates, and expectations as pure checks."""
