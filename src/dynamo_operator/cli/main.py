"""`dynamoctl`, the user's tool, which is also `kubectl dynamo`.

Starting must be quick, so a command's code is imported when it is called; only its signature and its
help stand here.
"""

import gc
import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, CycloptsError, Parameter

from dynamo_operator.cli import acting_commands
from dynamo_operator.cli.application import application, execute, version
from dynamo_operator.cli.check_options import UNLIMITED, Options
from dynamo_operator.cli.cluster_options import HERE, Where

_PLUGIN = "kubectl-dynamo"
_OptionalApi: TypeAlias = Literal["grove", "kai", "leaderWorkerSet", "inferencePool", "istio"]
"""The keys of `api.optional_apis`, which is not imported here."""

Paths = Annotated[str, Parameter(metavar="FILE", show_default=False, allow_leading_hyphen=True)]
Files = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"], metavar="FILE", show_default=False, allow_leading_hyphen=True
    ),
]


def given(paths: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    """The files of a command line, of which there must be one.

    Raises: CycloptsError.
    """
    if not (paths or files):
        raise CycloptsError(msg="no file given: expected FILE or --filename FILE")
    return [*paths, *files]


def app(program: str = "dynamoctl") -> App:
    """The commands, under the name of the program as it was called."""
    tool = application(
        program, "Look at, change, check and try out NVIDIA Dynamo graphs on Kubernetes."
    )
    tool.command(why)
    tool.command(status)
    tool.command(tree)
    tool.command(acting_commands.scale)
    tool.command(acting_commands.suspend)
    tool.command(acting_commands.resume)
    tool.command(acting_commands.rollout())
    tool.command(render)
    tool.command(lint)
    package = "dynamo_operator.cli"
    tool.command(f"{package}.crds:app", name="crds", help="Print the CustomResourceDefinitions.")
    tool.command(f"{package}.dev:app", name="dev", help="Local control planes to try things on.")
    tool.command(install)
    tool.command(acting_commands.uninstall)
    tool.command(images)
    tool.command(check)
    tool.command(profiler)
    tool.command(version)
    return tool


def why(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)],
    /,
    *,
    where: Where = HERE,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Say why a graph is not ready: what holds it up, since when, and what to do.

    Ends with 0 if it is ready, with 1 if it is not or is not there, with 3 if
    the cluster does not answer.

    Parameters
    ----------
    name
        A graph, or another object of ours as KIND/NAME: dgd, dcd, dgdsa, dm or dgdr.
    output
        `text` is for people, `json` for machines.
    """
    from dynamo_operator.cli.looking import print_reasons

    return int(print_reasons(name, where, output))


def status(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)],
    /,
    *,
    where: Where = HERE,
    watch: Annotated[bool, Parameter(name=["--watch", "-w"])] = False,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Print how a graph stands: its services, and its conditions.

    Ends with 0 if it is ready, with 1 if it is not or is not there, with 3 if
    the cluster does not answer.

    Parameters
    ----------
    name
        A graph, or another object of ours as KIND/NAME: dgd, dcd, dgdsa, dm or dgdr.
    watch
        Print it again on each change, until it is ready.
    output
        `text` is for people, `json` for machines.
    """
    from dynamo_operator.cli.looking import print_status

    return int(print_status(name, where, output, watch=watch))


def tree(
    name: Annotated[str, Parameter(metavar="NAME", show_default=False)],
    /,
    *,
    where: Where = HERE,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Print all objects of a graph down to its pods, what is ready, and what blocks a pod.

    A kind that you may not list is named on stderr and left out. Ends with 0 if
    the graph is ready, with 1 if it is not or is not there, with 3 if the
    cluster does not answer.

    Parameters
    ----------
    name
        The graph: NAME or dgd/NAME.
    output
        `text` is for people, `json` for machines.
    """
    from dynamo_operator.cli.looking import print_tree

    return int(print_tree(name, where, output))


def render(
    *paths: Paths,
    files: Files = (),
    orchestrator: Literal["deployment", "lws", "grove"] = "lws",
    settings: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = "",
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> None:
    """Print the objects that the operator would make, without a cluster.

    The same code as in the operator makes them, of graphs and of components.
    Other objects are printed as they are. Nothing is printed when anything is
    wrong. Left out is what only a cluster knows: owner references with their
    uids, and the pull secrets found there.

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for standard input.
    files
        The same, as kubectl takes it. May be repeated.
    orchestrator
        What the cluster has beside Deployments, for graphs on several nodes.
    settings
        Settings file of the operator. Without one, the settings of a default installation.
    namespace
        Namespace of objects that name none. An object that names another one is an error.
    output
        `yaml` prints one document for each object, `json` a list.
    """
    gc.disable()  # the process ends before there is any garbage worth looking for
    from dynamo_operator.cli.render import print_objects

    print_objects(
        given(paths, files),
        orchestrator=orchestrator,
        settings=settings,
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

    Prints all problems and all warnings, and a summary on stderr. Ends with 1
    if anything would be refused; warnings alone are fine. Objects of other
    kinds are not checked.

    Parameters
    ----------
    paths
        YAML or JSON files, folders of such files, or `-` for standard input.
    files
        The same, as kubectl takes it. May be repeated.
    settings
        Settings file of the operator. Without one, the settings of a default installation.
    namespace
        Namespace of objects that name none.
    output
        `table` is for people, `sarif` for code hosts that annotate changes.
    """
    from dynamo_operator.cli import lint as command

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
    """Print the objects of an installation, for `kubectl apply --server-side -f -`.

    They are those of the charts with their defaults. For any other choice use
    the charts.

    Parameters
    ----------
    print_
        Print them. It does nothing else.
    namespace
        Namespace of the operator.
    image
        Image of the operator. Without it, the one of this version.
    restricted
        Let the operator work in its namespace only.
    operator_only
        Leave out the namespace and the definitions, to go back to an older version or to delete.
    withhold
        API of another project that the operator may not use, even where it is installed. Repeatable.
    """
    from dynamo_operator.cli.install import print_manifests
    from dynamo_operator.installation.manifests import Choices

    choices = Choices(namespace, image, restricted, operator_only, frozenset(withhold))
    print_manifests(choices, prints=print_)


def images(
    *,
    registry: Annotated[str, Parameter(metavar="HOST", show_default=False)] = "",
    output: Annotated[Literal["names", "pairs"], Parameter(name=["--output", "-o"])] = "names",
) -> None:
    """Print the images that an installation may pull, one per line.

    Parameters
    ----------
    registry
        Registry that takes the place of theirs, as the chart's `global.imageRegistry`.
    output
        `pairs` has each image and its name in that registry, for a tool that copies them.
    """
    from dynamo_operator.cli.install import print_images

    print_images(registry, output)


def check(
    *,
    options: Options = UNLIMITED,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Look at a cluster and say what it lacks. Nothing is changed.

    Each line says ok, warning or fail, and what to do. Ends with 1 if anything
    fails, with 3 if the cluster does not answer.

    Parameters
    ----------
    output
        `text` is for people, `json` for machines.
    """
    from dynamo_operator.cli.check import print_findings

    return int(print_findings(options, output))


def profiler(
    *,
    profile_config: Annotated[str, Parameter(metavar="TEXT", allow_leading_hyphen=True)],
    enable_gpu_discovery: bool = False,
) -> None:
    """Find a graph for a model and its latency targets by formulas, without a GPU.

    An analytic estimate: nothing is measured. It takes the place of Dynamo's
    profiler in the Job of a DynamoGraphDeploymentRequest, and writes the files
    that one must write into `output_dir`. Ends with 1 if the targets cannot be met.

    Parameters
    ----------
    profile_config
        The configuration, as YAML or JSON; docs/profiler.md names its keys.
    enable_gpu_discovery
        Take the GPUs of the cluster's nodes, not those that the configuration names.
    """
    from dynamo_operator.cli import profiler as command

    command.run(profile_config, discovers=enable_gpu_discovery)


def main() -> None:
    """The entry point. A command that returns a number ends with it as exit code."""
    called = Path(sys.argv[0]).name
    tool = app("kubectl dynamo" if called == _PLUGIN else "dynamoctl")
    result = execute(tool, sys.argv[1:])
    sys.exit(result if isinstance(result, int) else 0)
