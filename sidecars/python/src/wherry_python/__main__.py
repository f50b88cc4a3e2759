"""Serves the plugin."""

from __future__ import annotations

from wherry.sdk import serve
from wherry_python.expressions import PythonTransform

serve(PythonTransform)
