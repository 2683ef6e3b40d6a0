"""`dynamo-operator`, the program that runs in the cluster."""

import gc
import sys

from cyclopts import App

from dynamo_graphs.product import version
from dynamo_operator.cli import flags
from kube_runtime.commandline.application import application, execute


def app() -> App:
    """The commands. Without one, `run` is meant: the reference operator is started with flags only."""
    from dynamo_operator.cli.run import run

    manager = application("dynamo-operator", version=version)
    manager.default(run)
    manager.command(run, name="run")
    manager.command(
        "dynamo_operator.cli.copier:copy_output",  # loaded by the containers that run it, not by the operator
        name="copy-output",
        help="Save a profiler's output as a ConfigMap. Profiling Jobs run this.",
    )
    manager.command(
        "dynamo_operator.legacy.fetch:fetch",  # as above
        help="Fetch and unpack the archive of a build. Builds of the older generation run this.",
    )
    return manager


def main() -> None:
    """The entry point."""
    gc.disable()  # imports leave no garbage: they take 0.58 s of CPU without looking for it, 0.69 s with
    manager = app()
    gc.enable()
    execute(manager, flags.canonical(sys.argv[1:]))
