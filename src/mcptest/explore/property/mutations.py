"""Every mutation by its name, the plainest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcptest.explore.property.mutation import Mutation
from mcptest.explore.property.mutations_of_envelope import ENVELOPE_MUTATIONS
from mcptest.explore.property.mutations_of_params import PARAMS_MUTATIONS
from mcptest.explore.property.mutations_of_text import TEXT_MUTATIONS

MUTATIONS: Final[Mapping[str, Mutation]] = {
    mutation.name: mutation
    for mutation in (*ENVELOPE_MUTATIONS, *PARAMS_MUTATIONS, *TEXT_MUTATIONS)
}
