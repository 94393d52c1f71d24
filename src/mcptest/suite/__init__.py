"""Suites: YAML as typed values with their places, templates, and expectations as pure checks.

Each object of the format is one class (`model`): the loader reads by it, and the editor schema and
the reference page are made from it. `load` reads files and collects all problems with their places;
`expectations` holds an answer against what a test expects. Nothing here starts a server.
"""
