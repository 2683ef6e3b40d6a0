"""`dynamoctl` for screens that are compared: each time that it prints is five minutes ago."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from dynamo_graphs import ages
from dynamoctl.main import main

FOLDER = "SCREENS_FOLDER"
"""The variable with the folder in which the program runs."""

_KEPT = ("PATH", "HOME", "TERM", "KUBECONFIG")

Shown = Callable[[str | None, datetime], str]


def _frozen(shown: Shown) -> Shown:
    now = datetime(2026, 11, 23, 12, 5, tzinfo=UTC)
    return lambda time, _: shown(time and "2026-11-23T12:00:00Z", now)


def run() -> None:
    """Run it as from a shell with few variables."""
    os.chdir(os.environ[FOLDER])
    for name in os.environ.keys() - {*_KEPT}:
        del os.environ[name]
    for shown in (ages.since, ages.ago, ages.short_age):
        for module in [*sys.modules.values()]:
            if vars(module).get(shown.__name__) is shown:
                setattr(module, shown.__name__, _frozen(shown))
    main()
