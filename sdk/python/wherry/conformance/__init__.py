"""Checks that a sidecar, in whatever language, keeps the contract.

Start reading at `case` (what a case is) and `runner` (how it is run); `streams` holds the rules that are watched at
every message. The cases themselves are data, in `cases/`.
"""

from wherry.conformance.runner import Outcome, Result, Runner, Selection, Target
from wherry.conformance.suite import conformance_suite

__all__ = ["Outcome", "Result", "Runner", "Selection", "Target", "conformance_suite"]
