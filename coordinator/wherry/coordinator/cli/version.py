"""`wherry version`: what this installation consists of."""

from __future__ import annotations

import typer

from wherry.coordinator.cli.output import OutputFormat, OutputOption, show, table

NOT_INSTALLED = "not installed"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("version", help="Tell the versions of Wherry and of what it runs on.")(show_version)


def show_version(output: OutputOption = OutputFormat.TEXT) -> None:
    """Print the versions."""
    versions = collect_versions()
    show(versions, table([(_TITLES[key], value or NOT_INSTALLED) for key, value in versions.items()]))


_TITLES = {"wherry": "Wherry", "kafka": "Kafka", "spark": "Spark", "python": "Python", "java": "Java"}


def collect_versions() -> dict[str, str | None]:
    """Return the version of each part; None where it is not installed."""
    import platform

    from wherry.coordinator.dev.jars import KAFKA_VERSION

    return {
        "wherry": _distribution("wherry"),
        "kafka": KAFKA_VERSION,
        "spark": _distribution("pyspark"),
        "python": platform.python_version(),
        "java": _java(),
    }


def _distribution(name: str) -> str | None:
    # The metadata tell the version without importing the package.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _java() -> str | None:
    from wherry.coordinator.dev.errors import JavaError
    from wherry.coordinator.dev.java import find_java

    try:
        return find_java().version
    except JavaError:
        return None
