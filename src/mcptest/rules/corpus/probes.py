"""Named probes: what takes more than one message, as data that a runner executes.

A probe is a list of steps, taken in order over one connection unless a step says otherwise. What
came after a step is the target `steps.NAME`, what the runner works out of all of them is
`probe.FACT`. A step that can't be taken leaves its rule unobserved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcptest.rules.corpus.probe_steps import Probe
from mcptest.rules.corpus.probes_of_features import FEATURE_PROBES
from mcptest.rules.corpus.probes_of_messages import MESSAGE_PROBES

PROBES: Final[Mapping[str, Probe]] = {
    probe.name: probe for probe in (*MESSAGE_PROBES, *FEATURE_PROBES)
}
