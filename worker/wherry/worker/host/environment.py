"""Makes the virtual environment of a Python plugin, and builds what its manifest says must be built.

Decides where an environment lives (the user's cache, under a name that changes with everything it is made of) and
what goes into it: the plugin with its locked dependencies, and the same Wherry as the engine's. Invariants: an
environment appears at its place complete or not at all; one that is there is used without calling uv; two processes
never make the same one at once.

Run `python -m wherry.worker.host.environment DIRECTORY [--json]` to make the environment of a plugin beforehand.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wherry.contract.cache import CACHE_VARIABLE, cache_folder
from wherry.contract.errors import ConfigError, TransientError, WherryError
from wherry.contract.manifest import Manifest
from wherry.worker.host import engine
from wherry.worker.host.versions import satisfies

BUILD_TIMEOUT_S: Final = 900.0
LOCK_POLL_S: Final = 0.1
ERROR_LINES_MAX: Final = 6
EXIT_CONFIG: Final = 3
EXIT_TRANSIENT: Final = 4
# Bumped when environments have to be made anew for a reason that is not in their inputs.
LAYOUT: Final = 1
PYTHON: Final = "python"

_NETWORK_SIGNS: Final = (
    "failed to fetch",
    "error sending request",
    "dns error",
    "connection refused",
    "network",
    "timed out",
    "offline",
    "could not connect",
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a sidecar runs in.

    Attributes:
        argv: Program, as an absolute path, and arguments.
        environment: Variables that make its interpreter find its packages.
        path: Folders to put in front of PATH.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    path: tuple[str, ...] = ()


def runtime_of(manifest: Manifest) -> Runtime | None:
    """Return how to run a plugin, None when its environment has to be made first.

    Raises:
        ConfigError: The manifest names something that is not there.
    """
    if not manifest.run:
        raise ConfigError(f"plugin {manifest.name} has no run command in {manifest.directory / 'sidecar.yaml'}")
    if not needs_environment(manifest):
        return _plain_runtime(manifest)
    place = environment_directory(manifest)
    interpreter = place / "bin" / PYTHON
    # The interpreter is a link: it dangles when the Python it was made from has been removed.
    if not interpreter.exists():
        return None
    program = manifest.run[0]
    found = str(interpreter) if program == PYTHON else _find_program(manifest, [place / "bin"])
    variables = {"VIRTUAL_ENV": str(place), **manifest.environment.variables}
    return Runtime((found, *manifest.run[1:]), variables, (str(place / "bin"),))


def ensure(manifest: Manifest) -> Runtime:
    """Return how to run a plugin, making its environment when it is not there. May take minutes.

    Raises:
        ConfigError: It can't be made until someone changes something.
        TransientError: It can't be made now, such as without a network.
    """
    runtime = runtime_of(manifest)
    if runtime is None:
        with _locked(environment_directory(manifest)):
            runtime = runtime_of(manifest)
            if runtime is None:
                _make(manifest, environment_directory(manifest))
                runtime = runtime_of(manifest)
    if runtime is None:
        raise TransientError(f"the environment of plugin {manifest.name} was removed while it was being made")
    return runtime


def build(manifest: Manifest) -> bool:
    """Run the manifest's build command when the program is not there yet; tell whether it ran.

    Raises:
        ConfigError: The command failed.
    """
    if not manifest.build or not manifest.run or _program_exists(manifest):
        return False
    program = shutil.which(manifest.build[0])
    if program is None:
        raise ConfigError(
            f"plugin {manifest.name} is built with {manifest.build[0]!r}, which is not installed or not on the PATH"
        )
    _call([program, *manifest.build[1:]], f"the build of plugin {manifest.name}", directory=manifest.directory)
    if not _program_exists(manifest):
        raise ConfigError(f"the build of plugin {manifest.name} ended well but did not make {manifest.run[0]}")
    return True


def needs_environment(manifest: Manifest) -> bool:
    """Whether a plugin has a virtual environment of its own."""
    return manifest.environment.project is not None


def environment_directory(manifest: Manifest) -> Path:
    """Return where the environment of a plugin is or will be."""
    project = _project(manifest)
    digest = hashlib.sha256()
    parts = [
        str(LAYOUT),
        str(project),
        manifest.environment.python or "",
        sys.implementation.cache_tag,
        sys.base_prefix,
    ]
    source = engine.engine_source()
    parts += [source.requirement, str(source.editable), *source.extras]
    for part in parts:
        digest.update(part.encode() + b"\0")
    inputs = [project / "pyproject.toml", project / "uv.lock"]
    if source.editable:
        # An editable engine's code is seen at once, its dependencies only when the environment is made anew.
        inputs.append(Path(source.requirement) / "pyproject.toml")
    for path in inputs:
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return cache_folder() / "environments" / f"{manifest.name}-{digest.hexdigest()[:16]}"


def _project(manifest: Manifest) -> Path:
    assert manifest.environment.project is not None, "a plugin without a project has no environment"
    return manifest.environment.project


def _plain_runtime(manifest: Manifest) -> Runtime:
    assert manifest.run is not None
    variables = manifest.environment.variables
    if manifest.run[0] != PYTHON:
        return Runtime((_find_program(manifest, []), *manifest.run[1:]), variables)
    wanted = manifest.environment.python
    if wanted and satisfies(sys.version_info[:3], wanted) is False:
        raise ConfigError(
            f"plugin {manifest.name} needs Python {wanted}, and Wherry runs on {sys.version.split()[0]}; give the "
            "plugin an environment of its own (`environment: {python: ..., project: .}` in sidecar.yaml)"
        )
    # No environment of its own: the engine's interpreter, which has the SDK and nothing else to promise. The plugin's
    # folder is its working directory, so its modules are found; those in `src`, too.
    folders = [str(source)] if (source := manifest.directory / "src").is_dir() else []
    if not engine.is_installed():
        folders.append(str(engine.contract_directory().parents[1]))
    path = {"PYTHONPATH": os.pathsep.join(folders)} if folders else {}
    return Runtime((sys.executable, *manifest.run[1:]), {**path, **variables})


def _find_program(manifest: Manifest, folders: Sequence[Path]) -> str:
    assert manifest.run is not None
    program = manifest.run[0]
    if os.sep in program:
        path = (manifest.directory / program).absolute()
        if not path.is_file():
            hint = f"; run `wherry plugins install {manifest.directory}` to build it" if manifest.build else ""
            raise ConfigError(f"plugin {manifest.name} cannot be started: {path} does not exist{hint}")
        if not os.access(path, os.X_OK):
            raise ConfigError(f"plugin {manifest.name} cannot be started: {path} is not executable")
        return str(path)
    search = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    found = shutil.which(program, path=search)
    if found is None:
        raise ConfigError(
            f"plugin {manifest.name} cannot be started: there is no program {program!r} on the PATH; "
            f"install it, or name its path in {manifest.directory / 'sidecar.yaml'}"
        )
    return found


def _program_exists(manifest: Manifest) -> bool:
    assert manifest.run is not None
    return os.sep not in manifest.run[0] or (manifest.directory / manifest.run[0]).is_file()


def _make(manifest: Manifest, place: Path) -> None:
    """Make an environment beside its place, then move it there. The caller holds the lock."""
    for leftover in place.parent.glob(f".{place.name}.*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if place.exists():
        shutil.rmtree(place, ignore_errors=True)
    temporary = place.parent / f".{place.name}.{os.getpid()}"
    what = f"the environment of plugin {manifest.name}"
    uv = _find_uv()
    try:
        # Relocatable, because scripts would otherwise name the temporary place as their interpreter's.
        _call([uv, "venv", "--relocatable", "--python", _python_for(manifest), str(temporary)], what)
        interpreter = str(temporary / "bin" / PYTHON)
        _install(uv, manifest, interpreter, temporary / "locked.txt", what)
        temporary.rename(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _install(uv: str, manifest: Manifest, interpreter: str, locked: Path, what: str) -> None:
    project = _project(manifest)
    # --no-sources: the plugin's own wish where Wherry comes from (its workspace) must not beat the engine's.
    install = [uv, "pip", "install", "--python", interpreter, "--no-sources", *engine.engine_source().arguments]
    if (project / "uv.lock").is_file():
        export = [uv, "export", "--frozen", "--no-dev", "--no-hashes", "--no-emit-project", "--no-header"]
        export += ["--no-emit-package", engine.DISTRIBUTION, "--project", str(project), "--output-file", str(locked)]
        _call(export, what)
        install += ["--requirements", str(locked)]
    if _has_build_system(project):
        install += ["--editable", str(project)]
    else:
        install += ["--requirements", str(project / "pyproject.toml")]
    _call(install, what)


def _has_build_system(project: Path) -> bool:
    try:
        return "build-system" in tomllib.loads((project / "pyproject.toml").read_text())
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{project / 'pyproject.toml'} is not valid TOML: {error}") from None


def _python_for(manifest: Manifest) -> str:
    wanted = manifest.environment.python
    # The engine's own Python where it will do: it is there, and its packages are in uv's cache already.
    if not wanted or satisfies(sys.version_info[:3], wanted):
        return sys.executable
    return wanted


def _find_uv() -> str:
    with contextlib.suppress(ImportError, FileNotFoundError):
        import uv

        return str(uv.find_uv_bin())
    found = shutil.which("uv")
    if found is None:
        raise ConfigError("uv is needed to make the environments of Python plugins; install it with `pip install uv`")
    return found


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold the lock of one environment; the kernel frees it when the holder dies."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = (place.parent / f"{place.name}.lock").open("w")
    except OSError as error:
        raise ConfigError(
            f"environments of plugins cannot be made in {place.parent}: {error.strerror}; "
            f"set {CACHE_VARIABLE} to a folder that can be written"
        ) from None
    deadline = time.monotonic() + BUILD_TIMEOUT_S
    with lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise TransientError(f"another process has been making {place} for {BUILD_TIMEOUT_S:g} s") from None
                time.sleep(LOCK_POLL_S)
        yield


def _call(argv: Sequence[str], what: str, *, directory: Path | None = None) -> None:
    """Run a tool; its output is kept for the error message."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TransientError(f"{what} was not ready within {BUILD_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise ConfigError(f"{what} cannot be made: {argv[0]}: {error.strerror}") from None
    if done.returncode == 0:
        return
    output = (done.stderr or done.stdout).decode(errors="replace").strip()
    lines = "\n".join(f"  {line}" for line in output.splitlines()[-ERROR_LINES_MAX:])
    if any(sign in output.lower() for sign in _NETWORK_SIGNS):
        raise TransientError(
            f"{what} cannot be made without the package index, which cannot be reached; check the network, or set "
            f"UV_INDEX_URL or UV_OFFLINE. {Path(argv[0]).name} said:\n{lines}"
        )
    raise ConfigError(f"{what} cannot be made: {Path(argv[0]).name} ended with code {done.returncode}:\n{lines}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make one plugin's environment; the exit code tells what kind of error there was."""
    parser = argparse.ArgumentParser(prog="wherry.worker.host.environment", description=__doc__)
    parser.add_argument("directory", type=Path, help="the plugin's folder, with its sidecar.yaml")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        manifest = Manifest.load(options.directory)
        built = build(manifest)
        ready = bool(manifest.run) and runtime_of(manifest) is not None
        runtime = ensure(manifest) if manifest.run else None
    except WherryError as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_TRANSIENT if isinstance(error, TransientError) else EXIT_CONFIG
    result = {
        "plugin": manifest.name,
        "version": manifest.version,
        "environment": str(environment_directory(manifest)) if needs_environment(manifest) and manifest.run else None,
        "argv": list(runtime.argv) if runtime else None,
        "built": built,
        "cached": ready,
        "seconds": round(time.monotonic() - started, 3),
    }
    if options.json:
        sys.stdout.write(json.dumps(result) + "\n")
    else:
        where = f" in {result['environment']}" if result["environment"] else ""
        sys.stdout.write(f"plugin {manifest.name} {manifest.version} is ready{where}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
