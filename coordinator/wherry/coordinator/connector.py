"""One connector as a whole: is it wanted, planned, being wound down.

Decides a connector's next state. Never sees tasks, leases or plans: `machine.py` tells it when all leases have ended
(DRAINED) and how planning went.

    PLANNING ─planned─► RUNNING ─plan failed─► BACKOFF ─retry─► PLANNING        (FAILED when given up)
       ▲                   │ configured        pause │ stop │ delete
       └─drained─ RECONFIGURING        PAUSING ─► PAUSED, STOPPING ─► STOPPED, DELETING ─► DELETED
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from wherry.coordinator.api import State, TargetState
from wherry.coordinator.events import Failure, RestartPolicy
from wherry.coordinator.task import gives_up, restart_delay_ms


class ConnectorState(enum.Enum):
    """Where a connector stands."""

    PLANNING = "planning"
    RUNNING = "running"
    BACKOFF = "backoff"
    FAILED = "failed"
    RECONFIGURING = "reconfiguring"
    PAUSING = "pausing"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DELETING = "deleting"
    DELETED = "deleted"


class ConnectorInput(enum.Enum):
    """What can happen to a connector."""

    CONFIGURED = "configured"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    DELETE = "delete"
    RESTART = "restart"
    PLANNED = "planned"
    PLAN_FAILED = "plan failed"
    GAVE_UP = "gave up"
    RETRY_DUE = "retry due"
    DRAINED = "drained"


_S = ConnectorState
_I = ConnectorInput
_ACTIVE: Final = (_S.PLANNING, _S.RUNNING, _S.BACKOFF, _S.FAILED, _S.RECONFIGURING)
TRANSITIONS: Final[dict[tuple[ConnectorState, ConnectorInput], ConnectorState]] = {
    (_S.PLANNING, _I.PLANNED): _S.RUNNING,
    (_S.PLANNING, _I.PLAN_FAILED): _S.BACKOFF,
    (_S.PLANNING, _I.GAVE_UP): _S.FAILED,
    (_S.PLANNING, _I.RESTART): _S.PLANNING,
    (_S.RUNNING, _I.PLANNED): _S.RUNNING,
    (_S.RUNNING, _I.PLAN_FAILED): _S.BACKOFF,
    (_S.RUNNING, _I.GAVE_UP): _S.FAILED,
    (_S.RUNNING, _I.RESTART): _S.PLANNING,
    (_S.BACKOFF, _I.RETRY_DUE): _S.PLANNING,
    (_S.BACKOFF, _I.RESTART): _S.PLANNING,
    (_S.BACKOFF, _I.GAVE_UP): _S.FAILED,
    (_S.FAILED, _I.RESTART): _S.PLANNING,
    (_S.PAUSED, _I.RESUME): _S.PLANNING,
    (_S.PAUSED, _I.CONFIGURED): _S.PAUSED,
    (_S.PAUSED, _I.PAUSE): _S.PAUSED,
    (_S.PAUSED, _I.RESTART): _S.PAUSED,
    (_S.STOPPED, _I.RESUME): _S.PLANNING,
    (_S.STOPPED, _I.CONFIGURED): _S.STOPPED,
    (_S.STOPPED, _I.PAUSE): _S.PAUSED,
    (_S.STOPPED, _I.STOP): _S.STOPPED,
    (_S.STOPPED, _I.RESTART): _S.STOPPED,
    (_S.RECONFIGURING, _I.DRAINED): _S.PLANNING,
    (_S.RECONFIGURING, _I.RESTART): _S.RECONFIGURING,
    (_S.RECONFIGURING, _I.RESUME): _S.RECONFIGURING,
    (_S.PAUSING, _I.DRAINED): _S.PAUSED,
    (_S.PAUSING, _I.RESUME): _S.RECONFIGURING,
    (_S.PAUSING, _I.CONFIGURED): _S.PAUSING,
    (_S.PAUSING, _I.RESTART): _S.PAUSING,
    (_S.STOPPING, _I.DRAINED): _S.STOPPED,
    (_S.STOPPING, _I.RESUME): _S.RECONFIGURING,
    (_S.STOPPING, _I.CONFIGURED): _S.STOPPING,
    (_S.STOPPING, _I.PAUSE): _S.PAUSING,
    (_S.STOPPING, _I.RESTART): _S.STOPPING,
    (_S.DELETING, _I.DRAINED): _S.DELETED,
    (_S.DELETING, _I.DELETE): _S.DELETING,
    # Winding down for one reason or another looks the same from every state that may have leases.
    **{
        (s, _I.CONFIGURED): _S.RECONFIGURING for s in (_S.PLANNING, _S.RUNNING, _S.BACKOFF, _S.FAILED, _S.RECONFIGURING)
    },
    **{
        (s, _I.PAUSE): _S.PAUSING
        for s in (_S.PLANNING, _S.RUNNING, _S.BACKOFF, _S.FAILED, _S.RECONFIGURING, _S.PAUSING)
    },
    **{
        (s, _I.STOP): _S.STOPPING
        for s in (_S.PLANNING, _S.RUNNING, _S.BACKOFF, _S.FAILED, _S.RECONFIGURING, _S.PAUSING, _S.PAUSED, _S.STOPPING)
    },
    **{(s, _I.DELETE): _S.DELETING for s in _S if s not in (_S.DELETING, _S.DELETED)},
}
"""Everything else is refused: `step` answers the connector as it was."""

SHOWN: Final[dict[ConnectorState, State | None]] = {
    _S.PLANNING: State.UNASSIGNED,
    _S.RUNNING: State.RUNNING,
    _S.BACKOFF: State.RESTARTING,
    _S.FAILED: State.FAILED,
    _S.RECONFIGURING: State.RUNNING,
    _S.PAUSING: State.RUNNING,  # paused and stopped are shown when they are true: no record moves any more
    _S.PAUSED: State.PAUSED,
    _S.STOPPING: State.RUNNING,
    _S.STOPPED: State.STOPPED,
    _S.DELETING: State.UNASSIGNED,
    _S.DELETED: None,
}

PLANS: Final = frozenset({_S.PLANNING, _S.RUNNING})
WINDING_DOWN: Final = frozenset({_S.RECONFIGURING, _S.PAUSING, _S.STOPPING, _S.DELETING})
_TARGETS: Final = {
    TargetState.STARTED: ConnectorInput.RESUME,
    TargetState.PAUSED: ConnectorInput.PAUSE,
    TargetState.STOPPED: ConnectorInput.STOP,
}
_BEGINNINGS: Final = {
    TargetState.STARTED: ConnectorState.PLANNING,
    TargetState.PAUSED: ConnectorState.PAUSED,
    TargetState.STOPPED: ConnectorState.STOPPED,
}


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector and what is known of it."""

    name: str
    state: ConnectorState
    failure: Failure | None = None
    restarts: int = 0
    retry_at_ms: int | None = None
    planned: bool = False
    """A plan has succeeded since it was last configured."""

    @property
    def shown(self) -> State | None:
        """What REST shows; None when it is gone."""
        if self.state is ConnectorState.PLANNING and self.planned:
            return State.RUNNING
        return SHOWN[self.state]


def create(name: str, target: TargetState) -> Connector:
    """A new connector."""
    return Connector(name, _BEGINNINGS[target])


def target_input(target: TargetState) -> ConnectorInput:
    """The input that a wanted state is."""
    return _TARGETS[target]


def step(
    connector: Connector,
    given: ConnectorInput,
    now_ms: int,
    *,
    failure: Failure | None = None,
    policy: RestartPolicy | None = None,
    jitter: float = 0.0,
) -> Connector:
    """The connector afterwards. PLAN_FAILED needs `failure` and `policy`: BACKOFF or FAILED."""
    restarts = connector.restarts
    retry_at_ms = None
    if given is ConnectorInput.PLAN_FAILED:
        assert failure is not None, "a failure has a reason"
        assert policy is not None, "PLAN_FAILED comes with a reason and a policy"
        if gives_up(failure, restarts, policy):
            given = ConnectorInput.GAVE_UP
        else:
            restarts += 1
            retry_at_ms = now_ms + restart_delay_ms(restarts, policy, jitter)
    state = TRANSITIONS.get((connector.state, given))
    if state is None:
        return connector
    changed = replace(connector, state=state, retry_at_ms=retry_at_ms, restarts=restarts)
    match given:
        case ConnectorInput.PLANNED:
            return replace(changed, failure=None, restarts=0, planned=True)
        case ConnectorInput.PLAN_FAILED | ConnectorInput.GAVE_UP:
            return replace(changed, failure=failure)
        case ConnectorInput.RETRY_DUE:
            return changed
        case ConnectorInput.RESTART:
            return replace(changed, failure=None, restarts=0)
        case ConnectorInput.DRAINED:
            return replace(changed, planned=False)
        case _:
            return replace(changed, failure=None, restarts=0)
