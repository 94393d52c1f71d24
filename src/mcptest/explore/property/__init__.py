"""Hypothesis strategies for the protocol: messages, arguments and conversations. All pure.

Hypothesis is imported here and by whoever runs these; nothing else of the package needs it.
"""
