"""`dynamoctl`, which is also `kubectl dynamo`.

It must start quickly, so here are signatures and help only; a command imports its code when it is called.
"""

import errno
import gc
import os
import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, Parameter

from dynamo_operator import version
from dynamo_profiler.main import profiler
from dynamoctl.commands import author, change, edit, read, traffic
from dynamoctl.options import (
    CHECKS,
    HERE,
    CheckOptions,
    Everywhere,
    Files,
    GraphName,
    Namespace,
    ObjectName,
    OptionalFile,
    Paths,
    SettingsFile,
    TextOutput,
    Watch,
    Where,
    YamlOutput,
    all_files,
    run,
)
from kube_runtime.commandline import ExitCode, application, execute

_PLUGIN = "kubectl-dynamo"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OptionalApi: TypeAlias = Literal["grove", "kai", "leaderWorkerSet", "inferencePool", "istio"]
"""The keys of `api.optional_apis`, which is not imported here."""


def app(program: str = "dynamoctl") -> App:
    """Build the command line; `program` is the name that it was called by."""
    tool = application(
        program,
        "Inspect, change, check and try out NVIDIA Dynamo graphs on Kubernetes.",
        version=version,
    )
    tool.command(read.get)
    tool.command(why)
    tool.command(status)
    tool.command(tree)
    tool.command(read.events)
    tool.command(read.logs)
    tool.command(read.report)
    tool.command(read.models)
    tool.command(read.requests())
    tool.command(traffic.chat)
    tool.command(traffic.curl)
    tool.command(traffic.port_forward)
    tool.command(traffic.top)
    tool.command(edit.scale)
    tool.command(edit.suspend)
    tool.command(edit.resume)
    tool.command(edit.rollout())
    tool.command(change.diff)
    tool.command(change.apply)
    tool.command(change.convert)
    tool.command(render)
    tool.command(lint)
    tool.command(author.crds)
    tool.command(
        "dynamoctl.dev.commands:app",
        name="dev",
        help="Run local control planes: real API server and controllers, fake GPU nodes.",
    )
    tool.command(author.profile)
    tool.command(author.new)
    tool.command(author.explain)
    tool.command(author.schema)
    tool.command(author.completion)
    tool.command(install)
    tool.command(edit.uninstall)
    tool.command(images)
    tool.command(check)
    tool.command(profiler, show=False)  # `profile` is for people; this is what a Job runs
    return tool


def why(
    name: ObjectName = "",
    /,
    *,
    where: Where = HERE,
    every: Annotated[bool, Parameter(name="--all")] = False,
    everywhere: Everywhere = False,
    output: TextOutput = "text",
) -> int:
    """Explain why a graph is not ready: the cause, since when, and what to do.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.
    Example: dynamoctl why chat

    Parameters
    ----------
    every
        Explain everything in the namespace that is not ready, instead of one object.
    everywhere
        With --all: in all namespaces.
    """
    from dynamoctl.inspect.tree import print_reasons

    return run(print_reasons(name, where, output, every=every, everywhere=everywhere))


def status(
    name: ObjectName,
    /,
    *,
    where: Where = HERE,
    watch: Watch = False,
    output: TextOutput = "text",
) -> int:
    """Show the status of a graph: its services and conditions.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.
    Example: dynamoctl status chat --watch

    Parameters
    ----------
    watch
        Show it again on each change until it is ready.
    """
    from dynamoctl.inspect.tree import print_status

    return run(print_status(name, where, output, watch=watch))


def tree(
    name: GraphName,
    /,
    *,
    where: Where = HERE,
    output: TextOutput = "text",
) -> int:
    """Show all objects of a graph down to its pods, their readiness, and what blocks a pod.

    Kinds that you cannot list are named on stderr and left out. Exits with 0 if
    the graph is ready, 1 if it is not ready or not found, 3 if the cluster does
    not answer.
    Example: dynamoctl tree chat
    """
    from dynamoctl.inspect.tree import print_tree

    return run(print_tree(name, where, output))


def render(
    *paths: Paths,
    files: Files = (),
    orchestrator: Literal["deployment", "lws", "grove"] = "lws",
    settings: SettingsFile = None,
    facts: OptionalFile = None,
    namespace: Namespace = "",
    output: YamlOutput = "yaml",
) -> None:
    """Print the objects that the operator would create, without a cluster.

    It renders graphs, components and requests with the operator's own plan and code
    and prints other objects unchanged. Pull secrets, ServiceAccounts, ConfigMaps and
    scaling adapters in the files count as objects of the cluster. On any error it
    prints no object. It leaves out owner references, whose uids only a cluster knows,
    and generated SSH keys.
    Example: dynamoctl render -f graph.yaml

    Parameters
    ----------
    orchestrator
        Orchestrator of multinode services in the cluster.
    facts
        File with facts about the cluster, such as `kaiServed: true`.
    namespace
        Namespace of objects that name none (default: `default`); naming another one is an error.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """
    gc.disable()  # the process ends before a collection would pay
    from dynamoctl.authoring.render import print_objects

    print_objects(
        all_files(paths, files),
        orchestrator=orchestrator,
        settings=settings,
        facts=facts,
        namespace=namespace,
        output=output,
    )


def lint(
    *paths: Paths,
    files: Files = (),
    settings: SettingsFile = None,
    namespace: Namespace = "",
    output: Annotated[
        Literal["table", "json", "sarif"], Parameter(name=["--output", "-o"])
    ] = "table",
) -> int:
    """Check manifests offline with the rules of the webhooks.

    It prints all errors and warnings, and a summary on stderr. Exits with 1 if the
    webhooks would refuse anything; warnings alone are fine. It skips objects of
    other kinds.
    Example: dynamoctl lint -f manifests/

    Parameters
    ----------
    namespace
        Namespace of objects that name none (default: `default`).
    output
        Output format: `table` for people, `json`, or `sarif` for code hosts that annotate changes.
    """
    from dynamoctl.authoring import lint as command

    return command.lint(
        all_files(paths, files), settings=settings, namespace=namespace, output=output
    )


def install(
    *,
    print_: Annotated[bool, Parameter(name="--print")] = False,
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME")
    ] = "dynamo-system",
    image: Annotated[str, Parameter(metavar="IMAGE", show_default=False)] = "",
    restricted: bool = False,
    operator_only: bool = False,
    withhold: Annotated[tuple[_OptionalApi, ...], Parameter(show_default=False)] = (),
) -> None:
    """Print the objects of an installation for `kubectl apply --server-side -f -`.

    They equal the charts with default values; use the charts to change any other
    value.
    Example: dynamoctl install --print | kubectl apply --server-side -f -

    Parameters
    ----------
    print_
        Print the objects (the only mode).
    namespace
        Namespace of the operator.
    image
        Image of the operator (default: this version's).
    restricted
        Restrict the operator to its namespace.
    operator_only
        Leave out the namespace and the CRDs, for a rollback or a deletion.
    withhold
        Grant no permissions for this optional API, even where it is installed. Repeatable.
    """
    from dynamoctl.installation.manifests import Choices, print_manifests

    choices = Choices(namespace, image, restricted, operator_only, frozenset(withhold))
    print_manifests(choices, prints=print_)


def images(
    *,
    registry: Annotated[str, Parameter(metavar="HOST", show_default=False)] = "",
    output: Annotated[Literal["names", "pairs"], Parameter(name=["--output", "-o"])] = "names",
) -> None:
    """List the images that an installation may pull, one per line.

    Example: dynamoctl images --registry registry.example.com -o pairs

    Parameters
    ----------
    registry
        Registry in the place of the images' own, as with the chart's `global.imageRegistry`.
    output
        Output format: `pairs` adds each image's name in that registry, for a copy tool.
    """
    from dynamoctl.installation.checks import print_images

    print_images(registry, output)


def check(
    *,
    options: CheckOptions = CHECKS,
    output: TextOutput = "text",
) -> int:
    """Check a cluster for missing prerequisites (read-only).

    Each line is ok, warning or fail, with the remedy. Exits with 1 if any check
    fails, 3 if the cluster does not answer.
    Example: dynamoctl check --before-install
    """
    from dynamoctl.inspect.check import print_findings

    return run(print_findings(options, output))


def main() -> None:
    """Run the command line. A number that a command returns is the exit code."""
    _open_closed_streams()
    if any(not _is_text(argument) for argument in sys.argv[1:]):
        print("error: expected arguments in UTF-8", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    called = Path(sys.argv[0]).name
    tool = app("kubectl dynamo" if called == _PLUGIN else "dynamoctl")
    if sys.argv[1:2] == ["__complete"]:
        from dynamoctl.commands.completion import print_candidates

        print_candidates(tool, sys.argv[2:])
        return
    try:
        result = execute(tool, sys.argv[1:])
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # flushed once more at the end
        print(f"error: cannot write: {error.strerror}", file=sys.stderr)
        sys.exit(ExitCode.PROBLEMS)
    sys.exit(result if isinstance(result, int) else 0)


def kubectl_completion() -> None:
    """The program that kubectl runs to complete `kubectl dynamo`."""
    from dynamoctl.commands.completion import print_candidates

    print_candidates(app("kubectl dynamo"), sys.argv[1:])
    print(":4")  # no file names; Source: ShellCompDirectiveNoFileComp of spf13/cobra


def _open_closed_streams() -> None:
    """Open on /dev/null the standard streams that the caller has closed, as with `<&-`; Python has None."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")


def _is_text(argument: str) -> bool:
    """Whether an argument was UTF-8; Python has other bytes as surrogates, which nothing can print."""
    return not any("\ud800" <= char <= "\udfff" for char in argument)
