"""How a case ends when a sidecar does something else than the contract says."""

from __future__ import annotations


class Failure(Exception):  # noqa: N818 - a finding about the sidecar, not an error of the runner
    """A sidecar broke the contract; the text is one sentence that tells what was seen and what was expected."""


class Inapplicable(Exception):  # noqa: N818 - a reason to skip
    """A case can't be run on this sidecar; the text says why."""


class UsageError(Exception):
    """A case file, a subject file or an argument is wrong; the text says what and where."""
