"""`dynamoctl`, which is also `kubectl dynamo`.

It must start quickly, so here and in `commands` are signatures and help only; a command imports its code
when it is called. They raise CycloptsError for wrong usage, and OperatorError or a group of them.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cyclopts import App, Group

from dynamo_operator import version
from dynamoctl.commands import author, change, installation, read, traffic
from dynamoctl.options import in_order
from kube_runtime.commandline import ExitCode, application, execute


def _commands() -> dict[str, tuple[Callable[..., object] | App, ...]]:
    """The commands by the heading of their help, in its order."""
    return {
        "Look": (
            read.get,
            read.status,
            read.why,
            read.tree,
            read.events,
            read.logs,
            traffic.top,
            read.report,
        ),
        "Use": (traffic.chat, traffic.curl, traffic.port_forward),
        "Change": (change.diff, change.apply, change.scale, change.rollout(), change.suspend, change.resume),
        "Write": (
            *(author.new, author.profile, author.explain, author.schema),
            *(author.lint, author.render, change.convert),
        ),
        "Cluster": (installation.check, installation.install()),
    }


def app(program: str = "dynamoctl") -> App:
    """Build the command line; `program` is the name that it was called by."""
    tool = application(
        program, "Inspect, change, check and try out NVIDIA Dynamo graphs on Kubernetes.", version=version
    )
    groups = _commands()
    tool.group_commands = Group("Other", sort_key=len(groups) + 1)
    for position, (heading, commands) in enumerate(groups.items()):
        group = Group(heading, sort_key=position)
        for order, command in enumerate(commands):
            if isinstance(command, App):
                command.group, command.sort_key = group, order
                tool.command(command)
            else:
                tool.command(command, group=group, sort_key=order)
    tool.command(
        "dynamoctl.dev.commands:app",
        name="dev",
        help="Run local control planes to try graphs on.",
        group=Group("Playground", sort_key=len(groups)),
    )
    tool.command(author.completion)
    # `profile` is for people; this is what a Job runs.
    tool.command("dynamo_profiler.main:profiler", name="profiler", show=False)
    return tool


def run(arguments: Sequence[str], program: str = "dynamoctl") -> object:
    """Run a command line, and return the result of its command. Raises: SystemExit."""
    tool = app(program)
    words = in_order(tool, arguments)
    if words and words[0] not in tool:
        from dynamoctl.commands.answers import answer

        if text := answer(program, words):
            print(f"error: {text}", file=sys.stderr)
            sys.exit(ExitCode.USAGE)
    return execute(tool, words)


def main() -> None:
    """Run the command line. A number that a command returns is the exit code."""
    is_plugin = Path(sys.argv[0]).name == "kubectl-dynamo"
    program = "kubectl dynamo" if is_plugin else "dynamoctl"
    if sys.argv[1:2] == ["__complete"]:
        from dynamoctl.commands.completion import print_candidates

        print_candidates(app(program), sys.argv[2:])
        return
    result = run(sys.argv[1:], program)
    sys.exit(result if isinstance(result, int) else 0)


def kubectl_completion() -> None:
    """The program that kubectl runs to complete `kubectl dynamo`."""
    from dynamoctl.commands.completion import print_candidates

    print_candidates(app("kubectl dynamo"), sys.argv[1:])
    print(":4")  # no file names; Source: ShellCompDirectiveNoFileComp of spf13/cobra
