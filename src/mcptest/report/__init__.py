"""Rendering of results that were already reached. Nothing is run again here.

A kind of report is a type, a `Report` (`head`), that gives its results, its text and what is wrong.
`codec` encodes it as JSON, decodes it, and generates its JSON Schema (`json_schemas`). Whatever
renders reports for other programs knows results only. `stored` reads a file of any kind, so any
view can be made later.
"""
