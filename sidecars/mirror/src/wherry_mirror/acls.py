"""Which ACLs of topics go along, and as what. Pure.

Whoever may read in the source cluster may read the copy. Nobody gets to write it: a right to write stays behind, and a
right to do everything becomes one to read. What is denied stays denied. Only ACLs that name one topic go along, and
what is taken back in the source cluster stays in the target cluster, as with MirrorMaker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

ALLOW, READ, WRITE, ALL = "ALLOW", "READ", "WRITE", "ALL"


@dataclass(frozen=True, slots=True)
class Acl:
    """One rule about a topic.

    Attributes:
        topic: Its name; of a rule that is not literal what names begin with.
        principal: Whom it concerns.
        host: From where.
        operation: Kafka's name of what is done.
        permission: ALLOW or DENY.
        literal: Whether it names one topic, or `*`.
    """

    topic: str
    principal: str
    host: str
    operation: str
    permission: str
    literal: bool = True


def mirrored_acls(acls: Iterable[Acl], wanted: Callable[[str], bool], remote: Callable[[str], str]) -> list[Acl]:
    """Rules of the target cluster for those of the source cluster.

    Args:
        acls: Rules of the source cluster.
        wanted: Tells whether a topic is copied.
        remote: Name of a topic in the target cluster.
    """
    found = []
    for acl in acls:
        allows = acl.permission == ALLOW
        if not acl.literal or not wanted(acl.topic) or (allows and acl.operation == WRITE):
            continue
        operation = READ if allows and acl.operation == ALL else acl.operation
        found.append(replace(acl, topic=remote(acl.topic), operation=operation))
    return found
