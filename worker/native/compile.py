"""Compiles the library with the machine's C compiler: `python worker/native/compile.py`.

It goes into the package `wherry_native`, where a worker from this source tree finds it and a wheel takes it along.
Nothing is done when the library is newer than its sources. Exit code 1: there is no compiler, or it failed; with
`--if-possible` only a line is said then, because everything works without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LIBRARY = HERE / "wherry_native" / "libwherry_native.so"
FLAGS = ("-std=gnu11", "-O3", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")
TIMEOUT_S = 120.0


def compiler() -> str | None:
    """The C compiler: that of the variable CC, or the system's."""
    return shutil.which(os.environ.get("CC") or "cc") or shutil.which("gcc")


def fresh() -> bool:
    """Whether the library is there and newer than all it is made of."""
    made_of = [*(HERE / "src").iterdir(), Path(__file__)]
    return LIBRARY.exists() and LIBRARY.stat().st_mtime >= max(path.stat().st_mtime for path in made_of)


def compile_library() -> str:
    """Compiles unless that was done before; returns what went wrong, or nothing."""
    if fresh():
        return ""
    program = compiler()
    if program is None:
        return "there is no C compiler; install gcc, or set CC"
    # Whoever has the old library open keeps it: the new one takes its place as a whole.
    made = LIBRARY.with_suffix(f".{os.getpid()}")
    sources = sorted(str(path) for path in (HERE / "src").glob("*.c"))
    command = [program, *FLAGS, *sources, "-o", str(made), "-lpthread", "-ldl", "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode == 0:
            made.replace(LIBRARY)
            return ""
        return f"{program} failed:\n{done.stderr}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} could not run: {error}"
    finally:
        made.unlink(missing_ok=True)


if __name__ == "__main__":
    trouble = compile_library()
    if trouble:
        sys.stderr.write(f"wherry-native was not built: {trouble}\n")
    raise SystemExit(1 if trouble and "--if-possible" not in sys.argv[1:] else 0)
