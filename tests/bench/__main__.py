"""Entry of `python -m tests.bench`."""

from __future__ import annotations

import sys

from tests.bench.cli import main

sys.exit(main())
