"""The rules of components that span several nodes.

The operator wraps the user's command in a multinode launch, and guesses nothing: the number of processes, the
SSH keys and the command must be set.
"""

from collections.abc import Iterator

import msgspec

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.devices import gpus
from dynamo_graphs.facts import Facts
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind
from kube_runtime.kind import Fields

MAX_GROUPS = 1000
"""Most replicas of a multinode component: each is one object, and one reconcile creates all of them."""

MAX_NODES = 1000
"""Most nodes of a replica: command lines name each of them."""

MAX_GROUPS_BYTES = 128 * 1024 * 1024
"""Most bytes of the pod templates of all groups, which etcd stores and the operator caches."""

_TEMPLATES = 2
"""Pod templates of one group: the leader's and the workers'."""

WITH_COMMAND = ("frontend", "epp")
"""Component types that start without a command and arguments of the user."""


def multinode_problems(
    spec: ComponentSpec, path: str, framework: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of a component that spans several nodes."""
    if spec.nodes == 1:
        return
    if spec.nodes > MAX_NODES:
        message = f"a component spans at most {MAX_NODES} nodes"
        yield Problem(f"{path}.multinode.nodeCount", message)
    if spec.replicas is not None and spec.replicas > MAX_GROUPS:
        message = f"a multinode component has at most {MAX_GROUPS} replicas"
        yield Problem(f"{path}.replicas", message)
    yield from _bytes_problems(spec, path)
    main: Fields = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    if not main.get("args") and not _is_complete(spec, main):
        message = "missing command: a multinode component has no default"
        yield Problem(f"{path}.extraPodSpec.mainContainer.args", message, ProblemKind.REQUIRED)
    if framework != "trtllm":
        return
    if not gpus(spec):
        message = "missing GPUs: multinode TensorRT-LLM starts one process per GPU"
        yield Problem(f"{path}.resources.limits.gpu", message, ProblemKind.REQUIRED)
    if not settings.mpi_secret_name:
        message = (
            "multinode TensorRT-LLM requires SSH keys, but the operator's setting "
            "--mpi-run-ssh-secret-name is empty"
        )
        yield Problem(f"{path}.multinode.nodeCount", message, ProblemKind.NOT_SUPPORTED)


def _bytes_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Report pod templates that are too large for all groups together."""
    replicas = min(spec.replicas or 0, MAX_GROUPS)
    size = len(msgspec.json.encode(spec)) * _TEMPLATES if replicas > 1 else 0
    if size * replicas > MAX_GROUPS_BYTES:
        message = (
            f"{replicas} multinode replicas with templates of {size} bytes take {size * replicas} "
            f"bytes (limit {MAX_GROUPS_BYTES}): move large values into a ConfigMap"
        )
        yield Problem(f"{path}.replicas", message)


def lacks_orchestrator(spec: ComponentSpec, facts: Facts) -> bool:
    """Whether the component spans several nodes and the cluster has no orchestrator for that.

    Not a user's mistake: installing LeaderWorkerSet and Volcano resolves it.
    """
    return spec.nodes > 1 and not facts.lws_served


def _is_complete(spec: ComponentSpec, main: Fields) -> bool:
    """Whether the command starts without arguments: any program but a shell that expects a script."""
    command = main.get("command") or ()
    if not command:
        return spec.component_type in WITH_COMMAND
    return not (len(command) > 1 and command[-1].startswith("-") and command[-1].endswith("c"))
