"""Looks for changes of the protos that would break a peer: against the newest release, or the last change before this.

`buf breaking` does the looking; this only finds what to compare with.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> list[str]:
    """Runs git and returns its lines; none when it fails, as in a copy without history."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def base() -> str | None:
    """The commit to compare with: the newest release tag, else the last but one commit that touched the protos."""
    if tags := git("tag", "--list", "v*", "--sort=-v:refname", "--merged"):
        return tags[0]
    changes = git("log", "--format=%H", "-2", "--", "protos/wherry/connector")
    return changes[-1] if changes else None


def main() -> int:
    """Compares; 0 when nothing breaks, or when there is nothing to compare with."""
    against = base()
    if against is None:
        sys.stdout.write("no earlier protos to compare with\n")
        return 0
    command = ["buf", "breaking", "protos", "--against", f".git#ref={against},subdir=protos"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
