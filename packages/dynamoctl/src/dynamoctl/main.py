"""`dynamoctl`, which is also `kubectl dynamo`.

It must start quickly, so here and in `commands` are signatures and help only; a command imports its code
when it is called. They raise CycloptsError for wrong usage, and OperatorError or a group of them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, Group

from dynamo_operator import version
from dynamo_profiler.main import profiler
from dynamoctl.commands import author, change, installation, read, traffic
from kube_runtime.commandline import application, execute

_COMMANDS = {
    "Look": (read.get, read.status, read.why, read.tree, read.events, read.logs, traffic.top, read.report),
    "Use": (traffic.chat, traffic.curl, traffic.port_forward),
    "Change": (change.diff, change.apply, change.scale, change.rollout(), change.suspend, change.resume),
    "Write": (
        *(author.new, author.profile, author.explain, author.schema),
        *(author.lint, author.render, change.convert),
    ),
    "Cluster": (installation.check, installation.install()),
}
"""The commands by the heading of their help, in its order."""

_VALUED = {
    *("-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "--as", "--as-group"),
    *("--request-timeout", "-o", "--output", "-l", "--selector", "--field-selector"),
}
"""Flags with a value that kubectl takes before the command too."""


def app(program: str = "dynamoctl") -> App:
    """Build the command line; `program` is the name that it was called by."""
    tool = application(
        program, "Inspect, change, check and try out NVIDIA Dynamo graphs on Kubernetes.", version=version
    )
    tool._group_commands = Group("Other", sort_key=9)
    for position, (heading, commands) in enumerate(_COMMANDS.items()):
        for command in commands:
            tool.command(command, group=Group(heading, sort_key=position), sort_key=1)
    tool.command(
        "dynamoctl.dev.commands:app",
        name="dev",
        help="Run local control planes: real API server and controllers, fake GPU nodes.",
        group=Group("Playground", sort_key=len(_COMMANDS)),
    )
    tool.command(author.completion)
    tool.command(profiler, show=False)  # `profile` is for people; this is what a Job runs
    return tool
