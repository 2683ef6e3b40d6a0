"""A cluster with one real node, and images for it: `PYTHONPATH=tests python -m realnode`."""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from devcluster import DEFAULT_NAME
from devcluster.progress import shown
from kube_runtime.commandline import application, execute
from realnode.build import build_image, save_image
from realnode.machine import require_node_support
from realnode.node import RealInstance

app = application("realnode")
InstanceOption = Annotated[str, Parameter(metavar="NAME", help="Instance.")]


@app.command
def support() -> None:
    """Check whether this machine can be a node. Installs missing Debian packages."""
    with shown() as progress:
        require_node_support(progress)
    print("this machine supports a real node")


@app.command
def up(name: str = DEFAULT_NAME, /) -> None:
    """Create the node and its control plane, or start what does not run. Requires root."""
    instance = RealInstance(name)
    with shown() as progress:
        instance.up(progress=progress)
    print(f"{name} is up at {instance.server}")
    print(f"export KUBECONFIG={instance.kubeconfig}")


@app.command
def down(name: str = DEFAULT_NAME, /) -> None:
    """Stop everything and remove it."""
    with shown() as progress:
        RealInstance(name).down(progress=progress)


@app.command
def image(
    source: Path = Path(),
    /,
    *,
    name: Annotated[str, Parameter(metavar="IMAGE")],
    output: Annotated[Path, Parameter(metavar="FILE")],
) -> None:
    """Build the Containerfile in a folder and write an OCI archive, with buildah. Requires root."""
    with shown() as progress:
        build_image(source, name, progress)
        digest = save_image(name, output.absolute())
    print(f"{output}\t{name}@{digest}")


@app.command
def load(file: Path, /, *, instance: InstanceOption = DEFAULT_NAME) -> None:
    """Load the images of an OCI archive into the node."""
    with shown() as progress:
        RealInstance(instance).load_image(file.absolute(), progress=progress)


@app.command(name="exec")
def run(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True)], instance: InstanceOption = DEFAULT_NAME
) -> None:
    """Run a command in the network of the node, from where Services and pods are reachable."""
    words = [*RealInstance(instance).entering, *command]
    os.execvp(words[0], words)  # noqa: S606 - what the user asks for


if __name__ == "__main__":
    execute(app, sys.argv[1:])
