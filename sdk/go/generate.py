"""Generates the Go stubs of the public protos into sdk/go; `--check` fails when the committed ones differ.

The plugins are built from `tools/go.mod`, so that two machines make the same bytes. `wherry.control.v1` is internal
and gets no Go stubs.
"""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "protos"
STUBS = Path("connector") / "v1"
PLUGINS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
)


def generate(output: Path) -> list[Path]:
    """Runs buf over the public protos.

    Args:
        output: Folder that receives `connector/v1/*.pb.go`.

    Returns:
        The files made, relative to `output`.

    Raises:
        SystemExit: A tool failed; its own message says why.
    """
    with tempfile.TemporaryDirectory() as binaries:
        path = os.pathsep.join((binaries, str(Path(sys.executable).parent), os.environ.get("PATH", "")))
        environment = {**os.environ, "PATH": path, "GOBIN": binaries}
        build = ["go", "build", "-C", str(HERE / "tools"), "-o", binaries + os.sep, *PLUGINS]
        template = str(HERE / "buf.gen.yaml")
        buf = ["buf", "generate", str(PROTOS), "--template", template, "--output", str(output)]
        for command in (build, [*buf, "--path", str(PROTOS / "wherry" / "connector")]):
            try:
                code = subprocess.run(command, env=environment, check=False).returncode
            except FileNotFoundError as error:
                raise SystemExit(f"{command[0]} is not installed: {error}") from error
            if code:
                raise SystemExit(code)
    return sorted(path.relative_to(output) for path in (output / STUBS).glob("*.pb.go"))


def check() -> int:
    """Compares the committed stubs with fresh ones.

    Returns:
        0 when they are equal, 1 otherwise.
    """
    with tempfile.TemporaryDirectory() as scratch:
        fresh = generate(Path(scratch))
        committed = sorted(path.relative_to(HERE) for path in (HERE / STUBS).glob("*.pb.go"))
        stale = [
            str(path)
            for path in sorted({*fresh, *committed})
            if path not in committed or path not in fresh or not filecmp.cmp(Path(scratch) / path, HERE / path, False)
        ]
    if stale:
        sys.stderr.write("Go stubs differ from protos/; run `python sdk/go/generate.py`: " + ", ".join(stale) + "\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv[1:] else len(generate(HERE)) == 0)
