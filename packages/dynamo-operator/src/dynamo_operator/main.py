"""`dynamo-operator`, the program that runs in the cluster."""

import sys

from cyclopts import App

from dynamo_graphs.product import version
from dynamo_operator.cli import flags
from kube_runtime.commandline.application import application, execute


def app() -> App:
    """The commands. Without one, `run` is meant: the reference operator is started with flags only."""
    from dynamo_operator.cli.copier import copy_output
    from dynamo_operator.cli.run import run

    manager = application("dynamo-operator", version=version)
    manager.default(run)
    manager.command(run, name="run")
    manager.command(copy_output, name="copy-output")
    return manager


def main() -> None:
    """The entry point."""
    execute(app(), flags.canonical(sys.argv[1:]))
