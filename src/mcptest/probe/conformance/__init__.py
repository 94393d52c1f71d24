"""Conformance: a client or a server is put through named scenarios, as in the official suite.

Compliance (`mcptest.probe.compliance`) differs: it judges whatever a live server says by the rules
of the specification, and grades it. Here a scenario says what the peer is expected to do, and
checks with the ids of the official suite say whether it did.

`scenario` has the types of both sides: a `Scenario` is a script that acts and checks that judge
what was captured. What is said of them is data, which `scenario_catalogue` reads and puts together
with scripts and judges; it knows them all by name, and `scenario_runs` runs them side by side. For
clients (`client`, and `auth` about authorization) the script is a server, which `servers.scripted`
plays; for servers (`server`) it asks on a stage.
"""
