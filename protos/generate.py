"""Generates the Python stubs of the protos into sdk/python; `--check` fails when the committed ones differ."""

from __future__ import annotations

import filecmp
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
OUTPUT = PROTOS.parent / "sdk" / "python"


def generate(output: Path) -> list[Path]:
    """Runs protoc over every proto file.

    Args:
        output: Folder that receives `wherry/…/*_pb2*.py` and `.pyi`.

    Returns:
        The files made, relative to `output`.

    Raises:
        SystemExit: protoc refused a file; its own message says which.
    """
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    code = protoc.main(
        [
            "protoc",
            f"-I{PROTOS}",
            f"-I{files('grpc_tools') / '_proto'}",
            f"--python_out={output}",
            f"--pyi_out={output}",
            f"--grpc_python_out={output}",
            *sources,
        ]
    )
    if code:
        raise SystemExit(code)
    for package in {(output / source).parent for source in sources}:
        (package / "__init__.py").write_text(
            f'"""Generated stubs of {".".join(package.relative_to(output).parts)}."""\n'
        )
        (package.parent / "py.typed").touch()
        (package.parent / "__init__.py").write_text('"""Generated stubs; see protos/."""\n')
    return sorted(path.relative_to(output) for path in output.rglob("*_pb2*"))


def check() -> int:
    """Compares the committed stubs with fresh ones.

    Returns:
        0 when they are equal, 1 otherwise.
    """
    with tempfile.TemporaryDirectory() as scratch:
        fresh = generate(Path(scratch))
        committed = sorted(
            path.relative_to(OUTPUT) for path in OUTPUT.rglob("*_pb2*") if path.suffix in {".py", ".pyi"}
        )
        stale = [
            str(path)
            for path in sorted({*fresh, *committed})
            if path not in committed or path not in fresh or not filecmp.cmp(Path(scratch) / path, OUTPUT / path, False)
        ]
    if stale:
        sys.stderr.write("stubs differ from protos/; run `poe protos`: " + ", ".join(stale) + "\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(check() if "--check" in sys.argv[1:] else len(generate(OUTPUT)) == 0)
