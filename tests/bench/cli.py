"""`python -m tests.bench FLOW`: runs one flow (or `all`) on both systems, prints the table, writes the JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from tests.bench.connect_plugins import DEBEZIUM_VERSION
from tests.bench.figures import OTHER_CPU, SYSTEMS, table
from tests.bench.flows import FLOWS, GROUPS
from tests.bench.flows.flow import Flow
from tests.bench.processes import BenchError
from tests.bench.runner import Result, run_flow
from tests.bench.site import Options, Site
from tests.bench.systems import REPOSITORY, native_helper

from wherry.coordinator.dev.errors import DevServerError
from wherry.coordinator.dev.jars import KAFKA_VERSION

RUNS = 3
MINUTES = 2.0
DISTURBED_PERCENT = 10.0


def main(argv: list[str] | None = None) -> int:
    """Gives 0 when every run was measured, 1 when one failed, 2 when the harness itself could not work."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    _say(f"workers' native helper: {native_helper()}")
    names = [name for asked in arguments.flows for name in GROUPS.get(asked, (asked,))]
    reports, failed = [], False
    try:
        for name in names:
            report, result = _bench(FLOWS[name], arguments)
            reports.append(report)
            failed = failed or bool(result.failures)
    except (BenchError, DevServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bench: stopped; what was measured until then is kept", file=sys.stderr)
        return 130
    finally:
        if arguments.json and reports:
            arguments.json.write_text(json.dumps(reports, indent=2) + "\n")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "flows",
        nargs="+",
        metavar="FLOW",
        choices=[*FLOWS, *GROUPS],
        help="; ".join([*(f"{f.name}: {f.summary}" for f in FLOWS.values()), *(f"{g}: a group" for g in GROUPS)]),
    )
    parser.add_argument("--runs", type=_positive, default=RUNS, help=f"measured runs per system (default {RUNS})")
    parser.add_argument("--records", type=_positive, help="records per run (default: the flow's own)")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help=f"length of the memory flow (default {MINUTES:g})"
    )
    parser.add_argument("--only", choices=SYSTEMS, help="measure one system alone")
    parser.add_argument("--fresh", action="store_true", help="new processes for every run, no warm-up")
    parser.add_argument("--json", type=Path, help="write all runs, with detail, to this file")
    parser.add_argument("--keep", action="store_true", help="keep the directory with logs and data")
    parser.add_argument("--wherry-plugins", default=str(REPOSITORY / "sidecars"), help="plugin.path for Wherry")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _bench(flow: Flow, arguments: argparse.Namespace) -> tuple[dict[str, object], Result]:
    options = Options(
        runs=arguments.runs,
        records=arguments.records or flow.records,
        minutes=arguments.minutes,
        only=arguments.only,
        fresh=arguments.fresh,
        wherry_plugin_path=arguments.wherry_plugins,
    )
    begun = time.time()
    directory = Path(tempfile.mkdtemp(prefix="wherry-bench-"))
    directory.chmod(0o711)  # PostgreSQL's own user has to reach its data
    site = None
    try:
        site = Site(directory, options, {"": flow.settings, **flow.variants}, flow.plugins, _say)
        result = run_flow(site, flow)
    finally:
        if site is not None:
            site.stop()
        if arguments.keep:
            _say(f"logs and data are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    seconds = time.time() - begun
    _print_result(flow, options, result, seconds)
    return _report(flow, options, result, begun, seconds), result


def _print_result(flow: Flow, options: Options, result: Result, seconds: float) -> None:
    moment = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    print(f"\n{flow.name}: {flow.summary}")
    size = f"{options.runs} runs of {options.records:,} records each"
    print(f"{moment}, {size}, {seconds:.0f} s; median (least-greatest); wherry-native {native_helper()}\n")
    print(table(flow.figures, result.figures()))
    disturbed = max((run.get(OTHER_CPU.key, 0.0) for runs in result.figures().values() for run in runs), default=0.0)
    if disturbed > DISTURBED_PERCENT:
        print(f"disturbed: other processes used up to {disturbed:.0f} % of the machine; take it again when it is quiet")
    for failure in result.failures:
        print(f"failed: {failure}")
    print(flush=True)


def _report(flow: Flow, options: Options, result: Result, begun: float, seconds: float) -> dict[str, object]:
    return {
        "flow": flow.name,
        "summary": flow.summary,
        "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "seconds": round(seconds, 1),
        "options": {
            "runs": options.runs,
            "records": options.records,
            "minutes": options.minutes,
            "only": options.only,
            "fresh": options.fresh,
        },
        "machine": _machine(),
        "versions": _versions(),
        "figures": [asdict(figure) for figure in flow.figures],
        "runs": {name: [asdict(outcome) for outcome in outcomes] for name, outcomes in result.runs.items()},
        "failures": result.failures,
    }


def _machine() -> dict[str, object]:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gb": round(memory / 1e9, 1), "kernel": platform.release()}


def _versions() -> dict[str, str]:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=20.0, check=False).stderr
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, timeout=20.0, check=False,
    ).stdout  # fmt: skip
    return {
        "wherry": commit.strip(),
        "wherry_native": native_helper(),
        "kafka": KAFKA_VERSION,
        "debezium_jdbc": DEBEZIUM_VERSION,
        "java": java.splitlines()[0] if java else "unknown",
        "python": platform.python_version(),
    }


def _say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)
