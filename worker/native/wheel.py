"""Puts the library into the wheel: hatchling calls this when it builds one."""

from __future__ import annotations

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles, and says that the wheel is for this platform and any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        trouble = runpy.run_path(str(Path(self.root) / "compile.py"))["compile_library"]()
        if trouble:
            raise RuntimeError(f"wherry-native can't be built: {trouble}")
        build_data["artifacts"].append("wherry_native/*.so")
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
