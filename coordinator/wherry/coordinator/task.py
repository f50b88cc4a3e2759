"""One task of a connector: what REST shows under a number, and what it waits for.

Decides a task's next state and whether a failure is followed by a restart. Never sees a lease, a position or Spark.

    WAITING ─launched─► LAUNCHED ─opened─► RUNNING ─nothing to do─► PARKED ─woken─► WAITING
       ▲                   └──────failed──────┴─► BACKOFF ─retry─► WAITING   (or FAILED, when given up)
       └──ended── RESTARTING / PAUSING / STOPPING ◄─restart, pause, stop── LAUNCHED, RUNNING
       └──ended── MOVING ◄─move── RUNNING

Invariant: in WAITING, PARKED, BACKOFF, PAUSED, FAILED and STOPPED no lease of the task is live; in all others one is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from wherry.contract.errors import ErrorClass
from wherry.coordinator.api import State
from wherry.coordinator.events import Failure, RestartPolicy, TaskWork


class TaskState(enum.Enum):
    """Where a task stands."""

    WAITING = "waiting"
    LAUNCHED = "launched"
    RUNNING = "running"
    PARKED = "parked"
    BACKOFF = "backoff"
    RESTARTING = "restarting"
    PAUSING = "pausing"
    STOPPING = "stopping"
    MOVING = "moving"
    PAUSED = "paused"
    FAILED = "failed"
    STOPPED = "stopped"


class TaskInput(enum.Enum):
    """What can happen to a task."""

    LAUNCHED = "launched"
    OPENED = "opened"
    PARKED = "parked"
    WOKEN = "woken"
    ENDED = "ended"
    FAILED = "failed"
    GAVE_UP = "gave up"
    RETRY_DUE = "retry due"
    RESTART = "restart"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    MOVE = "move"


_S = TaskState
_I = TaskInput
TRANSITIONS: Final[dict[tuple[TaskState, TaskInput], TaskState]] = {
    (_S.WAITING, _I.LAUNCHED): _S.LAUNCHED,
    (_S.WAITING, _I.PARKED): _S.PARKED,
    (_S.WAITING, _I.FAILED): _S.BACKOFF,
    (_S.WAITING, _I.GAVE_UP): _S.FAILED,
    (_S.WAITING, _I.RESTART): _S.WAITING,
    (_S.WAITING, _I.PAUSE): _S.PAUSED,
    (_S.WAITING, _I.STOP): _S.STOPPED,
    (_S.LAUNCHED, _I.OPENED): _S.RUNNING,
    (_S.LAUNCHED, _I.ENDED): _S.WAITING,
    (_S.LAUNCHED, _I.PARKED): _S.PARKED,
    (_S.LAUNCHED, _I.FAILED): _S.BACKOFF,
    (_S.LAUNCHED, _I.GAVE_UP): _S.FAILED,
    (_S.LAUNCHED, _I.RESTART): _S.RESTARTING,
    (_S.LAUNCHED, _I.PAUSE): _S.PAUSING,
    (_S.LAUNCHED, _I.STOP): _S.STOPPING,
    (_S.RUNNING, _I.OPENED): _S.RUNNING,
    (_S.RUNNING, _I.ENDED): _S.WAITING,
    (_S.RUNNING, _I.PARKED): _S.PARKED,
    (_S.RUNNING, _I.FAILED): _S.BACKOFF,
    (_S.RUNNING, _I.GAVE_UP): _S.FAILED,
    (_S.RUNNING, _I.RESTART): _S.RESTARTING,
    (_S.RUNNING, _I.PAUSE): _S.PAUSING,
    (_S.RUNNING, _I.STOP): _S.STOPPING,
    (_S.RUNNING, _I.MOVE): _S.MOVING,
    (_S.PARKED, _I.WOKEN): _S.WAITING,
    (_S.PARKED, _I.RESTART): _S.WAITING,
    (_S.PARKED, _I.PAUSE): _S.PAUSED,
    (_S.PARKED, _I.STOP): _S.STOPPED,
    (_S.BACKOFF, _I.RETRY_DUE): _S.WAITING,
    (_S.BACKOFF, _I.RESTART): _S.WAITING,
    (_S.BACKOFF, _I.PAUSE): _S.PAUSED,
    (_S.BACKOFF, _I.STOP): _S.STOPPED,
    # While a lease is being ended on purpose, how it ends no longer matters.
    (_S.RESTARTING, _I.ENDED): _S.WAITING,
    (_S.RESTARTING, _I.RESTART): _S.RESTARTING,
    (_S.RESTARTING, _I.PAUSE): _S.PAUSING,
    (_S.RESTARTING, _I.STOP): _S.STOPPING,
    (_S.PAUSING, _I.ENDED): _S.PAUSED,
    (_S.PAUSING, _I.RESUME): _S.RESTARTING,
    (_S.PAUSING, _I.RESTART): _S.PAUSING,
    (_S.PAUSING, _I.PAUSE): _S.PAUSING,
    (_S.PAUSING, _I.STOP): _S.STOPPING,
    (_S.STOPPING, _I.ENDED): _S.STOPPED,
    (_S.STOPPING, _I.STOP): _S.STOPPING,
    (_S.MOVING, _I.ENDED): _S.WAITING,
    (_S.MOVING, _I.MOVE): _S.MOVING,
    (_S.MOVING, _I.RESTART): _S.RESTARTING,
    (_S.MOVING, _I.PAUSE): _S.PAUSING,
    (_S.MOVING, _I.STOP): _S.STOPPING,
    (_S.PAUSED, _I.RESUME): _S.WAITING,
    (_S.PAUSED, _I.RESTART): _S.PAUSED,
    (_S.PAUSED, _I.PAUSE): _S.PAUSED,
    (_S.PAUSED, _I.STOP): _S.STOPPED,
    (_S.FAILED, _I.RESTART): _S.WAITING,
    (_S.FAILED, _I.PAUSE): _S.FAILED,  # Kafka Connect shows a failed task through a pause, too
    (_S.FAILED, _I.RESUME): _S.FAILED,
    (_S.FAILED, _I.STOP): _S.STOPPED,
    (_S.STOPPED, _I.STOP): _S.STOPPED,
}
"""Everything else is refused: `step` answers the task as it was."""

SHOWN: Final[dict[TaskState, State | None]] = {
    _S.WAITING: State.UNASSIGNED,
    _S.LAUNCHED: State.UNASSIGNED,
    _S.RUNNING: State.RUNNING,
    _S.PARKED: State.RUNNING,  # parked is our way of running an idle task
    _S.BACKOFF: State.RESTARTING,
    _S.RESTARTING: State.RESTARTING,
    _S.PAUSING: State.RUNNING,
    _S.STOPPING: State.RUNNING,
    _S.MOVING: State.RUNNING,  # for as long as a lease takes to end and start elsewhere
    _S.PAUSED: State.PAUSED,
    _S.FAILED: State.FAILED,
    _S.STOPPED: None,
}

ENDING: Final = frozenset({_S.RESTARTING, _S.PAUSING, _S.STOPPING, _S.MOVING})
LEASED: Final = ENDING | {_S.LAUNCHED, _S.RUNNING}

_UNREMARKABLE: Final = frozenset({_I.LAUNCHED, _I.OPENED, _I.PARKED, _I.WOKEN, _I.MOVE})

NEEDS_A_PERSON: Final = frozenset({ErrorClass.CONFIG, ErrorClass.AUTH, ErrorClass.OFFSET_LOST, ErrorClass.SCHEMA})
"""Trying again changes nothing about these."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task and what is known of it."""

    number: int
    state: TaskState = TaskState.WAITING
    work: TaskWork | None = None
    """What it does; None for a runner of splits, which gets its work from the queue."""
    failure: Failure | None = None
    restarts: int = 0
    retry_at_ms: int | None = None
    since_ms: int = 0
    """When the state began."""
    seen_running: bool = False
    """RUNNING was shown, and only parking and waking since then: a new launch shows RUNNING, too, not UNASSIGNED."""

    @property
    def shown(self) -> State | None:
        """What REST shows; None when the task is not listed."""
        if self.seen_running and self.state in (TaskState.WAITING, TaskState.LAUNCHED):
            return State.RUNNING
        return SHOWN[self.state]


def step(
    task: Task,
    given: TaskInput,
    now_ms: int,
    *,
    failure: Failure | None = None,
    policy: RestartPolicy | None = None,
    jitter: float = 0.0,
) -> Task:
    """The task afterwards. FAILED needs `failure` and `policy`, which decide between BACKOFF and FAILED."""
    if given is TaskInput.FAILED:
        assert failure is not None, "a failure has a reason"
        assert policy is not None, "FAILED comes with a reason and a policy"
        return _failed(task, now_ms, failure, policy, jitter)
    state = TRANSITIONS.get((task.state, given))
    if state is None:
        return task
    changed = replace(
        task,
        state=state,
        retry_at_ms=None,
        since_ms=task.since_ms if state is task.state else now_ms,
        seen_running=task.seen_running and (given in _UNREMARKABLE or task.state is TaskState.MOVING),
    )
    match given:
        case TaskInput.OPENED:
            return replace(changed, failure=None, seen_running=True)
        case TaskInput.PARKED:
            return replace(changed, failure=None, restarts=0, seen_running=True)
        case TaskInput.RESTART if state is TaskState.WAITING or state is TaskState.RESTARTING:
            # A person, or new work, wipes the slate.
            return replace(changed, failure=None, restarts=0)
        case TaskInput.GAVE_UP:
            return replace(changed, failure=failure)
        case _:
            return changed


def restart_delay_ms(restart: int, policy: RestartPolicy, jitter: float) -> int:
    """Wait before restart `restart` (from 1); `jitter` is 0 … 1."""
    delay_ms = min(policy.base_ms * (restart * restart + restart) // 2, policy.delay_ms_max)
    return delay_ms + int(delay_ms * jitter * 0.1)


def gives_up(failure: Failure, restarts: int, policy: RestartPolicy) -> bool:
    """Whether nothing is tried after this failure; `restarts` is the number of restarts in a row before it."""
    if not policy.enabled or failure.error_class in NEEDS_A_PERSON:
        return True
    return policy.restarts_max >= 0 and restarts >= policy.restarts_max


def _failed(task: Task, now_ms: int, failure: Failure, policy: RestartPolicy, jitter: float) -> Task:
    healthy = task.state is TaskState.RUNNING and now_ms - task.since_ms >= policy.healthy_ms
    restarts = 0 if healthy else task.restarts
    given_up = gives_up(failure, restarts, policy)
    state = TRANSITIONS.get((task.state, TaskInput.GAVE_UP if given_up else TaskInput.FAILED))
    if state is None:
        return task
    if given_up:
        return replace(task, state=state, failure=failure, since_ms=now_ms, retry_at_ms=None, seen_running=False)
    retry_at_ms = now_ms + restart_delay_ms(restarts + 1, policy, jitter)
    return replace(task, state=state, failure=failure, since_ms=now_ms, restarts=restarts + 1, retry_at_ms=retry_at_ms)
