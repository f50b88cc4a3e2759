"""Lets `python -m wherry.coordinator.cli` do what the console script `wherry` does."""

from __future__ import annotations

from wherry.coordinator.cli import main

if __name__ == "__main__":
    main()
