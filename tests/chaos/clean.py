"""Nothing may be left of a run: no process, no socket, no temporary file."""

from __future__ import annotations

from tests.chaos import limits
from tests.support.standalone import Standalone
from tests.support.waiting import eventually

PARTING_S = 10.0


def stop_cleanly(system: Standalone) -> float:
    """Send SIGTERM; check exit code, time, and that nothing is left. Return the seconds it took."""
    code, seconds = system.stop()
    print(f"SIGTERM: exit {code} after {seconds:.2f} s")
    assert code == 0, f"exit code {code}:\n{system.log_tail()}"
    assert seconds <= limits.STOP_S, f"SIGTERM took {seconds:.1f} s:\n{system.log_tail()}"
    # What the kernel ends with its parent ends a moment after it.
    assert eventually(lambda: not system.processes(), PARTING_S), f"these outlived a clean stop: {system.processes()}"
    assert not system.leftover_files(), f"a clean stop left files: {system.leftover_files()}"
    return seconds


def wait_for_orphans(system: Standalone) -> None:
    """After the coordinator's death, wait until everything it had started has ended too."""
    gone = eventually(lambda: not system.processes(), limits.ORPHANS_S)
    assert gone, f"these outlived the coordinator by {limits.ORPHANS_S:.0f} s: {system.processes()}"
