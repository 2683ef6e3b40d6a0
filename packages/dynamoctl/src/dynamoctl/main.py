"""`dynamoctl`, which is also `kubectl dynamo`.

It must start quickly, so here and in `commands` are signatures and help only; a command imports its code
when it is called. They raise CycloptsError for wrong usage, and OperatorError or a group of them.
"""

import sys
from pathlib import Path

from cyclopts import App

from dynamo_operator import version
from dynamo_profiler.main import profiler
from dynamoctl.commands import author, change, installation, read, traffic
from kube_runtime.commandline import application, execute


def app(program: str = "dynamoctl") -> App:
    """Build the command line; `program` is the name that it was called by."""
    tool = application(
        program, "Inspect, change, check and try out NVIDIA Dynamo graphs on Kubernetes.", version=version
    )
    for command in (
        *(read.get, read.why, read.status, read.tree, read.events, read.logs, read.report),
        *(read.models, read.requests(), traffic.chat, traffic.curl, traffic.port_forward),
        *(traffic.top, change.scale, change.suspend, change.resume, change.rollout()),
        *(change.diff, change.apply, change.convert, author.render, author.lint, author.crds),
        *(author.profile, author.new, author.explain, author.schema, author.completion),
        *(installation.install, installation.uninstall, installation.images, installation.check),
    ):
        tool.command(command)
    tool.command(
        "dynamoctl.dev.commands:app",
        name="dev",
        help="Run local control planes: real API server and controllers, fake GPU nodes.",
    )
    tool.command(profiler, show=False)  # `profile` is for people; this is what a Job runs
    return tool


def main() -> None:
    """Run the command line. A number that a command returns is the exit code."""
    is_plugin = Path(sys.argv[0]).name == "kubectl-dynamo"
    tool = app("kubectl dynamo" if is_plugin else "dynamoctl")
    if sys.argv[1:2] == ["__complete"]:
        from dynamoctl.commands.completion import print_candidates

        print_candidates(tool, sys.argv[2:])
        return
    result = execute(tool, sys.argv[1:])
    sys.exit(result if isinstance(result, int) else 0)


def kubectl_completion() -> None:
    """The program that kubectl runs to complete `kubectl dynamo`."""
    from dynamoctl.commands.completion import print_candidates

    print_candidates(app("kubectl dynamo"), sys.argv[1:])
    print(":4")  # no file names; Source: ShellCompDirectiveNoFileComp of spf13/cobra
