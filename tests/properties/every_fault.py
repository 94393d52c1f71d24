"""The whole table of bugs. Importing the tables fills it."""

from __future__ import annotations

from tests.properties import faults, faults_of_state
from tests.properties.fault_seams import BUGS

__all__ = ["BUGS", "faults", "faults_of_state"]
