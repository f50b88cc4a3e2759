"""Worker settings in environment variables, as the Docker images of Kafka Connect have them: CONNECT_GROUP_ID=g.

Decides which variable is which key. After CONNECT_ one underscore is a dot, two are a dash and three an underscore;
letters become small. Variables that images use for the JVM or the logger are no settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

PREFIX: Final = "CONNECT_"
# Of images and start scripts, not of the worker.
_OTHERS: Final = re.compile(r"(LOG4J2?|CUB|JMX|HEAP|JVM|KAFKA)(_.*)?|OPTS|LOG_DIR|MODE|PROPERTIES_FILE")
_UNDERSCORES: Final = re.compile(r"_{1,3}")
_SIGNS: Final = {1: ".", 2: "-", 3: "_"}


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The worker settings among environment variables, by key."""
    return {
        _key(name.removeprefix(PREFIX)): value
        for name, value in sorted(environ.items())
        if name.startswith(PREFIX) and len(name) > len(PREFIX) and not _OTHERS.fullmatch(name.removeprefix(PREFIX))
    }


def _key(name: str) -> str:
    return _UNDERSCORES.sub(lambda found: _SIGNS[len(found[0])], name).lower()
