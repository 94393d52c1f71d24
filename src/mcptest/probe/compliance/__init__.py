"""Compliance: whatever a live server says is judged by the rules of the specification, and graded.

Conformance (`mcptest.probe.conformance`) differs: it puts a client or a server through the named
scenarios of the official suite. Here it is learned what the server has, asked what the corpus asks,
and judged what came. `site` opens every `conversation` and keeps a tape of each, `learning` finds
out what can be asked, `questions` and `probing` ask, `observed_facts` are worked out of what probes
saw, `confirmation` asks again whatever failed, `rule_results` says what came of it, and `judging`
holds it together.
"""
