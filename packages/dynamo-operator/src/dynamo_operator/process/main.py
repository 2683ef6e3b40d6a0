"""`dynamo-operator run`: from the command line to a running operator and its orderly stop."""

import asyncio
import inspect
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import structlog
from cyclopts import Group, Parameter

from dynamo_operator import version
from dynamo_operator.process import flags, observability, operator
from dynamo_operator.settings import Settings

if TYPE_CHECKING:
    from cyclopts.help import ColumnSpec, DefaultFormatter, HelpEntry
    from rich.console import Console, ConsoleOptions

STOP_SECONDS: Final = 9.0
"""Seconds for an orderly stop. The kubelet waits 30 s; on node shutdown it may wait less."""

_SPARE_SECONDS: Final = 0.5

Operate: TypeAlias = Callable[[Settings, asyncio.Event], Awaitable[None]]
"""An operator that runs with these settings until the event is set."""

_STOPPING = (signal.SIGTERM, signal.SIGINT)


def run(**arguments: str | None) -> None:
    """Run the operator until SIGTERM or SIGINT (default command).

    Flags take precedence over the settings file, and the file over the environment.
    Flags follow Go's syntax: `-flag value` and `--flag=value` are the same, and a
    boolean needs no value.
    """
    start(arguments, operator.run)


def start(arguments: Mapping[str, str | None], operate: Operate) -> None:
    """Run `operate` with the settings of this command line, until a signal to stop."""
    given = flags.given(arguments)
    file = given.get(flags.CONFIG)
    settings = flags.read_settings(given, file=Path(file) if file else None, environment=os.environ)
    observability.configure(settings.logging, sys.stderr)
    log = structlog.get_logger("setup")
    for flag in flags.flags():
        if flag.unused and flag.name in given:
            log.warning("flag has no effect", flag=f"--{flag.name}", reason=flag.unused)
    _log_missing(settings)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(settings, operate, on_stop=end_within))


def signature() -> inspect.Signature:
    """The signature from which cyclopts builds flags and help of `run`: one text parameter per flag."""
    from cyclopts.help import DefaultFormatter

    formatter = DefaultFormatter(column_specs=_columns)
    return inspect.Signature([_parameter(flag, formatter) for flag in flags.flags()])


def _parameter(flag: flags.Flag, formatter: "DefaultFormatter") -> inspect.Parameter:
    annotation = Annotated[
        str | None,
        Parameter(
            name=[f"--{name}" for name in flag.names],
            help=flag.text,
            metavar=flag.metavar,
            show_default=(lambda _: flag.default) if flag.default else False,
            group=Group(flag.group, sort_key=flags.GROUPS.index(flag.group), help_formatter=formatter),
        ),
    ]
    return inspect.Parameter(
        flag.identifier, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _columns(
    console: "Console",  # noqa: ARG001  the signature is given by cyclopts
    options: "ConsoleOptions",  # noqa: ARG001
    entries: "list[HelpEntry]",
) -> "tuple[ColumnSpec, ...]":
    """Two columns, the first wide enough for every flag: a flag broken across lines cannot be searched."""
    from cyclopts.help import ColumnSpec, DescriptionRenderer, NameRenderer

    indent = 2  # of every line of a cell but the first
    width = max(len(name) + indent for entry in entries for name in entry.all_options)
    names = ColumnSpec(renderer=NameRenderer(max_width=width), style="cyclopts.name", min_width=width)
    return (names, ColumnSpec(renderer=DescriptionRenderer(), overflow="fold"))


run.__signature__ = signature()  # type: ignore[attr-defined]


async def serve(settings: Settings, operate: Operate, *, on_stop: Callable[[], None] = lambda: None) -> None:
    """Run the operator until the first signal to stop; a second signal ends the process at once.

    `on_stop` is called at the first one.
    """
    log = structlog.get_logger("setup")
    log.info("starting", version=version())
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopping(number: signal.Signals) -> None:
        stop.set()
        for stop_signal in _STOPPING:
            loop.remove_signal_handler(stop_signal)
            signal.signal(stop_signal, signal.SIG_DFL)
        on_stop()
        log.info("stopping; a second signal exits at once", signal=number.name)

    for stop_signal in _STOPPING:
        loop.add_signal_handler(stop_signal, stopping, stop_signal)
    await operate(settings, stop)
    log.info("stopped")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The event loop of uvloop if it is installed; None for asyncio's own."""
    with suppress(ImportError):
        factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
        return factory
    return None


def _log_missing(settings: Settings) -> None:
    render = settings.render  # the charts set these flags
    roles = {
        "--planner-cluster-role-name": render.planner_cluster_role_name,
        "--epp-cluster-role-name": render.epp_cluster_role_name,
        "--dgdr-profiling-cluster-role-name": render.dgdr_profiling_cluster_role_name,
    }
    missing = [flag for flag, role in roles.items() if not role]
    if missing and not render.restricted_namespace:
        reason = "planners, endpoint pickers and profiling Jobs need these ClusterRoles"
        structlog.get_logger("setup").warning("flags not set", flags=missing, reason=reason)


def end_within(seconds: float = STOP_SECONDS) -> None:
    """End the process after that time if it is still running.

    A thread logs and exits. If C code holds the interpreter, the kernel ends the process with SIGALRM.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_SECONDS)

    def end() -> None:
        structlog.get_logger("setup").error("stopping took too long: ended", seconds=seconds)
        sys.stderr.flush()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
