"""`dynamoctl`, the user's tool, which is also `kubectl dynamo`.

Starting must be quick, so a command's code is imported when it is called; only its signature and its
help stand here.
"""

import gc
import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, Parameter

from dynamo_graphs.product import version
from dynamo_profiler.main import profiler
from dynamoctl import author_commands, change_commands, read_commands, traffic_commands
from dynamoctl import edit_commands as acting_commands
from dynamoctl.check_options import UNLIMITED, Options
from dynamoctl.cluster_options import HERE, Where
from dynamoctl.file_arguments import Files, Paths, given
from kube_runtime.commandline.application import application, execute

_PLUGIN = "kubectl-dynamo"
_OptionalApi: TypeAlias = Literal["grove", "kai", "leaderWorkerSet", "inferencePool", "istio"]
"""The keys of `api.optional_apis`, which is not imported here."""


def app(program: str = "dynamoctl") -> App:
    """The commands, under the name of the program as it was called."""
    tool = application(
        program,
        "Inspect, change, check and try out NVIDIA Dynamo graphs on Kubernetes.",
        version=version,
    )
    tool.command(read_commands.get)
    tool.command(why)
    tool.command(status)
    tool.command(tree)
    tool.command(read_commands.events)
    tool.command(read_commands.logs)
    tool.command(read_commands.report)
    tool.command(read_commands.models)
    tool.command(read_commands.requests())
    tool.command(traffic_commands.chat)
    tool.command(traffic_commands.curl)
    tool.command(traffic_commands.port_forward)
    tool.command(traffic_commands.top)
    tool.command(acting_commands.scale)
    tool.command(acting_commands.suspend)
    tool.command(acting_commands.resume)
    tool.command(acting_commands.rollout())
    tool.command(change_commands.diff)
    tool.command(change_commands.apply)
    tool.command(change_commands.convert)
    tool.command(render)
    tool.command(lint)
    package = "dynamoctl"
    tool.command(f"{package}.crds:app", name="crds", help="Print the CustomResourceDefinitions.")
    tool.command(
        f"{package}.dev:app", name="dev", help=("Run local control planes to try things on.")
    )
    tool.command(author_commands.profile)
    tool.command(author_commands.new)
    tool.command(author_commands.explain)
    tool.command(author_commands.schema)
    tool.command(author_commands.completion)
    tool.command(install)
    tool.command(acting_commands.uninstall)
    tool.command(images)
    tool.command(check)
    tool.command(profiler, show=False)  # `profile` is for people; this is what a Job runs
    return tool


def why(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)] = "",
    /,
    *,
    where: Where = HERE,
    every: Annotated[bool, Parameter(name="--all")] = False,
    everywhere: Annotated[bool, Parameter(name=["--all-namespaces", "-A"])] = False,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Explain why a graph is not ready: the cause, since when, and what to do.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.

    Parameters
    ----------
    name
        Graph, or KIND/NAME for another kind: dgd, dcd, dgdsa, dm or dgdr.
    every
        Explain everything in the namespace that is not ready, instead of one object.
    everywhere
        With --all: in all namespaces.
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.inspection import print_reasons

    return int(print_reasons(name, where, output, every=every, everywhere=everywhere))


def status(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)],
    /,
    *,
    where: Where = HERE,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"])] = False,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Show the status of a graph: its services and conditions.

    Exits with 0 if it is ready, 1 if it is not ready or not found, 3 if the
    cluster does not answer.

    Parameters
    ----------
    name
        Graph, or KIND/NAME for another kind: dgd, dcd, dgdsa, dm or dgdr.
    watch
        Print it again on each change until it is ready.
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.inspection import print_status

    return int(print_status(name, where, output, watch=watch))


def tree(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)],
    /,
    *,
    where: Where = HERE,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Show all objects of a graph down to its pods, their readiness, and what blocks a pod.

    Kinds that you cannot list are named on stderr and left out. Exits with 0 if
    the graph is ready, 1 if it is not ready or not found, 3 if the cluster does
    not answer.

    Parameters
    ----------
    name
        Graph: NAME or dgd/NAME.
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.inspection import print_tree

    return int(print_tree(name, where, output))


def render(
    *paths: Paths,
    files: Files = (),
    orchestrator: Literal["deployment", "lws", "grove"] = "lws",
    settings: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    facts: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = "",
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> None:
    """Print the objects that the operator would create, without a cluster.

    It renders graphs, components and requests with the operator's own plan and code
    and prints other objects unchanged. Pull secrets, ServiceAccounts, ConfigMaps and
    scaling adapters in the files count as objects of the cluster. On any error it
    prints no object. It leaves out owner references, whose uids only a cluster knows,
    and generated SSH keys.

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for stdin.
    files
        File, folder or `-`, as for kubectl. Repeatable.
    orchestrator
        Orchestrator of multinode services in the cluster.
    settings
        Settings file of the operator (default: those of a default installation).
    facts
        File with facts about the cluster, such as `kaiServed: true`.
    namespace
        Namespace of objects that name none (default: `default`); naming another one is an error.
    output
        Output format: `yaml` prints one document per object, `json` one List.
    """
    gc.disable()  # the process ends before there is any garbage worth looking for
    from dynamoctl.render import print_objects

    print_objects(
        given(paths, files),
        orchestrator=orchestrator,
        settings=settings,
        facts=facts,
        namespace=namespace,
        output=output,
    )


def lint(
    *paths: Paths,
    files: Files = (),
    settings: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = "",
    output: Annotated[
        Literal["table", "json", "sarif"], Parameter(name=["--output", "-o"])
    ] = "table",
) -> int:
    """Check manifests offline with the rules of the webhooks.

    It prints all errors and warnings, and a summary on stderr. Exits with 1 if the
    webhooks would refuse anything; warnings alone are fine. It skips objects of
    other kinds.

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for stdin.
    files
        File, folder or `-`, as for kubectl. Repeatable.
    settings
        Settings file of the operator (default: those of a default installation).
    namespace
        Namespace of objects that name none (default: `default`).
    output
        Output format: `table` for people, `json`, or `sarif` for code hosts that annotate changes.
    """
    from dynamoctl import lint as command

    return command.lint(given(paths, files), settings=settings, namespace=namespace, output=output)


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
    from dynamoctl.install import print_manifests
    from dynamoctl.installation.manifests import Choices

    choices = Choices(namespace, image, restricted, operator_only, frozenset(withhold))
    print_manifests(choices, prints=print_)


def images(
    *,
    registry: Annotated[str, Parameter(metavar="HOST", show_default=False)] = "",
    output: Annotated[Literal["names", "pairs"], Parameter(name=["--output", "-o"])] = "names",
) -> None:
    """List the images that an installation may pull, one per line.

    Parameters
    ----------
    registry
        Replace their registry by this one, as the chart's `global.imageRegistry` does.
    output
        Output format: `pairs` adds each image's name in that registry, for a copy tool.
    """
    from dynamoctl.install import print_images

    print_images(registry, output)


def check(
    *,
    options: Options = UNLIMITED,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Check a cluster for missing prerequisites (read-only).

    Each line is ok, warning or fail, with the remedy. Exits with 1 if any check
    fails, 3 if the cluster does not answer.

    Parameters
    ----------
    output
        Output format: `text` for people, `json` for machines.
    """
    from dynamoctl.check import print_findings

    return int(print_findings(options, output))


def main() -> None:
    """The entry point. A command that returns a number ends with it as exit code."""
    called = Path(sys.argv[0]).name
    tool = app("kubectl dynamo" if called == _PLUGIN else "dynamoctl")
    if sys.argv[1:2] == ["__complete"]:
        from dynamoctl.completion import print_candidates

        print_candidates(tool, sys.argv[2:])
        return
    result = execute(tool, sys.argv[1:])
    sys.exit(result if isinstance(result, int) else 0)
