"""`dynamoctl dev`: local control planes to develop and test against.

A shell that completes words reads these signatures, so a command imports its code when it is called.
"""

import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from devcluster import DEFAULT_NAME
from kube_runtime.commandline import ExitCode, application
from kube_runtime.errors import ConfigError

if TYPE_CHECKING:
    from devcluster.instance import Instance

_CHUNK = 1 << 16
_BETWEEN_READS_SECONDS = 0.2

app = application("dev")
_kinds = application("crds", "Install the CRDs of other projects in a local control plane.")
app.command(_kinds)
app.command(
    "dynamoctl.dev.demo:demo",
    name="demo",
    help="Start a control plane and the operator, apply a graph, ask its model, remove everything.",
)

Follow = Annotated[bool, Parameter(name=["--follow", "-f"], help="Follow the log until Ctrl-C.")]
NodeCount = Annotated[int | None, Parameter(metavar="NUMBER", validator=validators.Number(gte=0, lte=1000))]
InstanceName = Annotated[str, Parameter(help="Instance.")]
InstanceOption = Annotated[str, Parameter(metavar="NAME", help="Instance.")]


@app.command
def build() -> None:
    """Find or build the programs of the control plane. The first build takes minutes."""
    from devcluster.programs import find
    from devcluster.progress import shown

    with shown() as progress:
        binaries = find(progress)
    for name, path in binaries.items():
        print(f"{name}\t{path}")


@app.command
def up(
    name: str = DEFAULT_NAME,
    /,
    *,
    nodes: NodeCount = None,
    crds: Annotated[str, Parameter(metavar="NAMES", show_default=False)] = "",
    no_operator: bool = False,
    v1beta1: bool = True,
) -> None:
    """Start a control plane and the operator; what already runs is left alone.

    The operator runs in the background, installed as by the chart: CRDs, webhooks, ClusterRoles.

    Parameters
    ----------
    name
        Instance. Several run side by side.
    nodes
        Number of fake nodes with 8 GPUs each (default: unchanged; 4 for a new instance).
    crds
        CRDs of other projects to install, comma-separated: see `crds install`.
    no_operator
        Start the control plane only.
    v1beta1
        Store v1beta1 and serve v1alpha1 as well, which the operator converts; without it a new instance has
        v1alpha1 alone. An instance keeps the versions that it has.
    """
    from devcluster.instance import Instance
    from devcluster.progress import shown

    instance = Instance(name)
    kinds = [kind for kind in crds.split(",") if kind]
    with shown() as progress:
        if no_operator:
            instance.up(nodes=nodes, crds=kinds, progress=progress)
        else:
            from dynamoctl.dev import playground

            playground.up(instance, progress, nodes=nodes, crds=kinds, serves_both=v1beta1)
    print(f"{name} is up at {instance.server}")
    print(f"export KUBECONFIG={instance.kubeconfig}")
    if not no_operator:
        hint = "" if name == DEFAULT_NAME else f" {name}"
        print_next(
            (f'eval "$({program()} dev env{hint})"', "kubectl and dynamoctl use this cluster"),
            ("kubectl apply -f examples/vllm-disaggregated.yaml", "a graph, ready in seconds"),
            (f'{program()} chat vllm-disaggregated "Hello"', "an answer"),
            (f"{program()} dev logs -f{hint}", "what the operator does"),
        )


@app.command
def env(name: InstanceName = DEFAULT_NAME, /) -> None:
    """Print shell commands that make kubectl and dynamoctl use an instance: `eval "$(dynamoctl dev env)"`."""
    from devcluster.instance import Instance
    from devcluster.programs import find
    from devcluster.progress import Silent

    instance = Instance(name)
    print(f"export KUBECONFIG={shlex.quote(str(instance.kubeconfig))}")
    missing = [] if shutil.which("dynamoctl") else [Path(sys.executable).parent]
    if not shutil.which("kubectl"):
        missing.append(find(Silent())["kubectl"].parent)
    if missing:
        print(f'export PATH="$PATH":{shlex.quote(":".join(map(str, missing)))}')


@app.command
def logs(name: InstanceName = DEFAULT_NAME, /, *, follow: Follow = False) -> None:
    """Print the operator's log."""
    from devcluster.instance import Instance

    instance = Instance(name)
    if not instance.exists:
        raise ConfigError(name, f"there is no such instance; create it: dynamoctl dev up {name}")
    log = instance.companion.log
    if not log.exists():
        raise ConfigError(name, f"has no operator; start it: dynamoctl dev up {name}")
    with log.open(encoding="utf-8", errors="replace") as lines:
        while (text := lines.read(_CHUNK)) or follow:
            sys.stdout.write(text)
            if not text:
                sys.stdout.flush()
                time.sleep(_BETWEEN_READS_SECONDS)


@app.command
def restart(name: InstanceName = DEFAULT_NAME, /) -> None:
    """Restart the operator, with the code as it is now.

    The control plane and its objects stay.
    """
    from devcluster.instance import Instance
    from devcluster.progress import shown
    from dynamoctl.dev import playground

    with shown() as progress:
        playground.restart(Instance(name), progress)


@app.command
def down(name: InstanceName | None = None, /, *, all: bool = False) -> None:  # noqa: A002 - the flag's name
    """Stop a control plane and delete all its data.

    Parameters
    ----------
    all
        Stop every instance.
    """
    from devcluster.instance import Instance
    from devcluster.progress import shown

    if all and name:
        raise ConfigError("dev down", "takes a name or --all, not both")
    chosen = Instance.all() if all else [Instance(name or DEFAULT_NAME)]
    with shown() as progress:
        for instance in chosen:
            instance.down(progress=progress)


@app.command
def status(name: Annotated[str | None, Parameter(help="Instance (default: all).")] = None, /) -> ExitCode:
    """Show the processes of control planes.

    Exits with 1 if one does not run.
    """
    from devcluster.instance import Instance

    made = (instance for instance in Instance.all() if instance.exists)
    chosen = made if name is None else [Instance(name)]
    return max((_show(instance) for instance in chosen), default=ExitCode.OK)


@app.command
def kubeconfig(name: InstanceName = DEFAULT_NAME, /, *, content: bool = False) -> None:
    """Print the path of the administrator's kubeconfig.

    Parameters
    ----------
    content
        Print the file's content instead.
    """
    from devcluster.instance import Instance

    path = Instance(name).kubeconfig
    print(path.read_text() if content else path, end="" if content else "\n")


@_kinds.command
def install(*names: str, instance: InstanceOption = DEFAULT_NAME) -> None:
    """Install CRDs of other projects: grove, inferencepool, istio, kai, lws, podgroup.

    Parameters
    ----------
    names
        Projects (default: all).
    """
    from devcluster import optional_crds
    from devcluster.instance import Instance
    from devcluster.progress import shown

    with shown() as progress:
        Instance(instance).install_crds(names or optional_crds.NAMES, progress=progress)


def _show(instance: "Instance") -> ExitCode:
    from devcluster.kubelet import runtime

    state = instance.status()
    is_without = instance.companion.log.exists() and not instance.companion.pid()
    if state.is_alive and is_without:
        hint = "" if instance.name == DEFAULT_NAME else f" {instance.name}"
        print(
            f"No operator runs in {instance.name}: changes have no effect. Start it: {program()} dev up{hint}"
        )
    word = "running" if state.is_whole else "broken" if state.is_alive else "stopped"
    print(f"{instance.name:<16} {word:<8} {state.version or 'no answer':<10} {state.server}")
    for process, pid in state.pids.items():
        print(f"  {process:<24} {pid or 'not running'}")
    if instance.companion.log.exists():
        print(f"  {instance.companion.name:<24} {instance.companion.pid() or 'not running'}")
        real = runtime.installed(instance.folder)
        engine = f"dynamo.mocker {real.version}" if real else "a small program (no Dynamo runtime)"
        print(f"  {'models':<24} simulated by {engine}")
    return ExitCode.OK if state.is_whole and not is_without else ExitCode.PROBLEMS


def program() -> str:
    """What a user types for `dynamoctl` in the folder where the command ran."""
    own = Path(sys.executable).with_name("dynamoctl")
    # `uv run`, as in `make demo`, activates an environment that the user's shell does not have.
    is_active = "UV_RUN_RECURSION_DEPTH" not in os.environ
    if (is_active and own.parent == Path(os.environ.get("VIRTUAL_ENV", ""), "bin")) or not own.exists():
        return "dynamoctl"
    return os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)


def print_next(*steps: tuple[str, str]) -> None:
    """Print commands, one per line, and what each is for."""
    width = max(len(command) for command, _ in steps)
    print("\nNext:")
    for command, purpose in steps:
        print(f"  {command:<{width}}  # {purpose}")
