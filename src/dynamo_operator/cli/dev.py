"""`dynamoctl dev`: local control planes to develop and test against."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from dynamo_operator.cli.application import application
from dynamo_operator.cli.errors import ExitCode
from dynamo_operator.controlplane import optional_crds
from dynamo_operator.controlplane.binaries import find
from dynamo_operator.controlplane.image_build import ImageBuild
from dynamo_operator.controlplane.instance import DEFAULT_NAME, Instance
from dynamo_operator.controlplane.machine import require_node_support
from dynamo_operator.controlplane.progress import shown
from dynamo_operator.kube.errors import ConfigError

app = application("dev", "Local control planes: real API server and controllers, fake GPU nodes.")
_kinds = application("crds", "Kinds of other projects on a local control plane.")
app.command(_kinds)
app.command("dynamo_operator.cli.demo:demo", name="demo")

NodeCount = Annotated[int | None, Parameter(validator=validators.Number(gte=0, lte=1000))]


@app.command
def build() -> None:
    """Find the programs of the control plane, or build them. Takes minutes the first time."""
    with shown() as progress:
        binaries = find(progress)
    for name, path in binaries.items():
        print(f"{name}\t{path}")


@app.command
def support() -> None:
    """Say whether this machine can be a real node. Installs Debian packages that are missing."""
    with shown() as progress:
        require_node_support(progress)
    print("this machine can be a real node")


@app.command
def up(
    name: str = DEFAULT_NAME, /, *, nodes: NodeCount = None, real: bool = False, crds: str = ""
) -> None:
    """Start a control plane, or whatever of it does not run.

    Parameters
    ----------
    name:
        The instance. Several run side by side.
    nodes:
        Fake nodes with 8 GPUs each. Default: as before; 4 for a new instance.
    real:
        One real node that runs containers, in namespaces of its own. Needs root.
    crds:
        Kinds of other projects to install, separated by commas: see `crds install`.
    """
    instance = Instance(name)
    with shown() as progress:
        kinds = [kind for kind in crds.split(",") if kind]
        instance.up(nodes=nodes, real=real, crds=kinds, progress=progress)
    print(f"{name} is up at {instance.server}")
    print(f"export KUBECONFIG={instance.kubeconfig}")


@app.command(name="exec")
def execute(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)], instance: str = DEFAULT_NAME
) -> None:
    """Run a command in the network of a real node, where Services and pods are reached.

    Parameters
    ----------
    command:
        The command and its arguments, after `--`.
    instance:
        The instance.
    """
    if not command:
        raise ConfigError("dev exec", "needs a command, as in: dev exec -- curl http://10.96.0.1")
    words = [*Instance(instance).entering, *command]
    os.execvp(words[0], words)  # noqa: S606 - what the user asks for


@app.command
def image(
    source: Path = Path(), /, *, name: str, output: Path, label: list[str] | None = None
) -> None:
    """Build an image from a Containerfile, without a container engine or a registry. Needs root.

    Parameters
    ----------
    source:
        The folder with the Containerfile, and with all that it copies.
    name:
        What the image is called, such as `localhost/dynamo-operator:0.1.0`.
    output:
        The OCI archive to write.
    label:
        A label as NAME=VALUE. May be repeated.
    """
    labels = dict(_label(each) for each in label or ())
    with shown() as progress:
        digest = ImageBuild(source, name, labels=labels).write(output.absolute(), progress)
    print(f"{output}\t{name}@{digest}")


@app.command
def load(file: Path, /, *, instance: str = DEFAULT_NAME) -> None:
    """Give a real node the images in an OCI archive.

    Parameters
    ----------
    file:
        The archive, such as `dynamoctl dev image` writes.
    instance:
        The instance.
    """
    with shown() as progress:
        progress.step(f"loading {file.name}")
        Instance(instance).load_image(file.absolute())


@app.command
def down(name: str | None = None, /, *, all: bool = False) -> None:  # noqa: A002 - the flag's name
    """Stop a control plane and remove it with all its data.

    Parameters
    ----------
    name:
        The instance.
    all:
        Every instance.
    """
    if all and name:
        raise ConfigError("dev down", "takes a name or --all, not both")
    chosen = Instance.all() if all else [Instance(name or DEFAULT_NAME)]
    with shown() as progress:
        for instance in chosen:
            instance.down(progress=progress)


@app.command
def status(name: str | None = None, /) -> ExitCode:
    """Show the processes of one control plane, or of all. Exit code 1 if not everything runs.

    Parameters
    ----------
    name:
        The instance. Default: all.
    """
    made = (instance for instance in Instance.all() if instance.exists)
    chosen = made if name is None else [Instance(name)]
    return max((_show(instance) for instance in chosen), default=ExitCode.OK)


@app.command
def kubeconfig(name: str = DEFAULT_NAME, /, *, content: bool = False) -> None:
    """Print the path of the administrator's kubeconfig file.

    Parameters
    ----------
    name:
        The instance.
    content:
        Print the file itself.
    """
    path = Instance(name).kubeconfig
    print(path.read_text() if content else path, end="" if content else "\n")


@_kinds.command
def install(*names: str, instance: str = DEFAULT_NAME) -> None:
    """Install kinds of other projects: grove, inferencepool, istio, kai, lws, podgroup.

    Parameters
    ----------
    names:
        Which ones. Default: all.
    instance:
        The instance.
    """
    with shown() as progress:
        Instance(instance).install_crds(names or optional_crds.NAMES, progress=progress)


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"--label {text}", "must be NAME=VALUE")
    return name, value


def _show(instance: Instance) -> ExitCode:
    state = instance.status()
    word = "running" if state.is_whole else "broken" if state.is_alive else "stopped"
    print(f"{instance.name:<16} {word:<8} {state.version or 'no answer':<10} {state.server}")
    for process, pid in state.pids.items():
        print(f"  {process:<24} {pid or 'not running'}")
    return ExitCode.OK if state.is_whole else ExitCode.PROBLEMS
