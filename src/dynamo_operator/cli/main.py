"""`dynamoctl`, the user's tool, which is also `kubectl dynamo`.

Starting must be quick, so a command's code is imported when it is called; only its signature and its
help stand here.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from dynamo_operator.cli.application import application, execute, version

_PLUGIN = "kubectl-dynamo"


def app(program: str = "dynamoctl") -> App:
    """The commands, under the name of the program as it was called."""
    tool = application(program, "Look at, check and try out NVIDIA Dynamo graphs on Kubernetes.")
    tool.command(render)
    package = "dynamo_operator.cli"
    tool.command(f"{package}.crds:app", name="crds", help="Print the CustomResourceDefinitions.")
    tool.command(f"{package}.dev:app", name="dev", help="Local control planes to try things on.")
    tool.command(version)
    return tool


def render(
    *,
    files: Annotated[
        list[str], Parameter(name=["--filename", "-f"], metavar="FILE", allow_leading_hyphen=True)
    ],
    orchestrator: Literal["deployment", "lws", "grove"] = "deployment",
    settings: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], metavar="NAME", show_default=False)
    ] = "",
    output: Annotated[Literal["yaml", "json"], Parameter(name=["--output", "-o"])] = "yaml",
) -> None:
    """Print the objects that the operator would make, without a cluster.

    The same code as in the operator makes them, of graphs and of components.
    Nothing is printed when anything is wrong. Left out is what only a cluster
    knows: owner references with their uids, and the pull secrets found there.

    Parameters
    ----------
    files
        YAML or JSON file, folder of such files, or `-` for standard input. May be repeated.
    orchestrator
        What the cluster has to run components with.
    settings
        Settings file of the operator.
    namespace
        Namespace of objects that name none. An object that names another one is an error.
    output
        `yaml` prints one document for each object, `json` a list.
    """
    from dynamo_operator.cli.render import print_objects

    print_objects(
        files, orchestrator=orchestrator, settings=settings, namespace=namespace, output=output
    )


def main() -> None:
    """The entry point. A command that returns a number ends with it as exit code."""
    called = Path(sys.argv[0]).name
    tool = app("kubectl dynamo" if called == _PLUGIN else "dynamoctl")
    result = execute(tool, sys.argv[1:])
    sys.exit(result if isinstance(result, int) else 0)
