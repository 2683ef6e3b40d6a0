"""TensorRT-LLM: on several nodes the leader starts all processes with mpirun, over SSH.

The user's command is quoted twice, once for the leader's shell and once for the shell that mpirun starts on
every node.
"""

import re
from collections.abc import Mapping

from dynamo_graphs.api.entry_point import is_shell
from dynamo_graphs.api.names import volume_name
from dynamo_graphs.render import ssh
from dynamo_graphs.render.backends import noop
from dynamo_graphs.render.group import GroupNode, shell_line, users_parts
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.launch import SHELL
from dynamo_graphs.render.merge import variable
from dynamo_graphs.render.shell import Fragment, Word, line
from kube_runtime.kind import Object

STARTS_LEADER_LAST = True

_LAUNCHER = "trtllm-llmapi-launch"
_STARTS_PYTHON = re.compile(r"python[0-9.]*\s", re.ASCII)
_SEPARATOR = re.compile(r"[|&;]")
_SPACES = " \t\n\r\f\v"
_DNS_SECONDS = 300
_FORWARDED = frozenset(
    (
        *("CUDA_VISIBLE_DEVICES", "HOME", "LD_LIBRARY_PATH", "MODEL_PATH", "PATH", "PYTHONPATH"),
        *("HF_DATASETS_CACHE", "HF_ENDPOINT", "HF_HOME", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
        *("NCCL_DEBUG", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "TENSORRT_LLM_CACHE_DIR"),
        *("TOKENIZERS_PARALLELISM", "TRANSFORMERS_CACHE", "TRTLLM_USE_UCX_KVCACHE", "USER"),
    )
)
"""What every process gets of the leader's environment, beside the variables of the container."""

_FULL_NAMES = variable("OMPI_MCA_orte_keep_fqdn_hostnames", "1")
_WORKER_READINESS: Object = {
    "tcpSocket": {"port": ssh.PORT},
    "initialDelaySeconds": 20,
    "periodSeconds": 20,
    "timeoutSeconds": 5,
    "failureThreshold": 10,
}

container = noop.container
leader_service = noop.leader_service  # workers only let the leader in, which starts last


def launch(container: Object, plan: ComponentPlan, node: GroupNode) -> Object:
    """The container as the leader that starts everything, or as a worker that waits for it."""
    mount = {
        "name": volume_name(plan.settings.mpi_secret_name),
        "mountPath": ssh.KEYS,
        "readOnly": True,
    }
    mounts = [
        each for each in container.get("volumeMounts", ()) if each.get("mountPath") != ssh.KEYS
    ]
    variables = [each for each in container["env"] if each["name"] != _FULL_NAMES["name"]]
    common = {
        **container,
        "env": [*variables, _FULL_NAMES],
        "volumeMounts": [*mounts, mount],
    }
    may_be_root = _may_be_root(container, plan.pod)
    if node.is_leader:
        run = _mpirun(common, node, node.count * plan.gpus, may_be_root=may_be_root)
        steps = [ssh.directories(".ssh"), *ssh.client(), *_workers_resolve(node), run]
        return {**common, "command": list(SHELL), "args": [" && ".join(steps)]}
    own = ssh.directories(".ssh", ".ssh/host_keys", ".ssh/run")
    steps = [own, *ssh.client(), *ssh.server(may_be_root=may_be_root)]
    dropped = ("livenessProbe", "startupProbe")
    return {
        **{name: value for name, value in common.items() if name not in dropped},
        "command": list(SHELL),
        "args": [" && ".join(steps)],
        "readinessProbe": _WORKER_READINESS,
    }


def launch_volumes(plan: ComponentPlan) -> list[Object]:
    """The keys with which leader and workers trust each other."""
    name = plan.settings.mpi_secret_name
    return [{"name": volume_name(name), "secret": {"secretName": name, "defaultMode": 0o644}}]


def _may_be_root(container: Object, pod: Object) -> bool:
    """Whether the user id is 0, or only the image knows it. Then mpirun and sshd need flags."""
    context: Object = {}
    for holder in (pod, container):
        found = holder.get("securityContext")
        context |= found if isinstance(found, Mapping) else {}
    user = context.get("runAsUser")
    return context.get("runAsNonRoot") is not True if user is None else user == 0


def _workers_resolve(node: GroupNode) -> list[str]:
    if not node.hosts.names_come_late:
        return []
    workers = line(host.shell for host in node.hosts.workers)
    return [ssh.names_resolve(workers, within_seconds=_DNS_SECONDS)]


def _mpirun(container: Object, node: GroupNode, processes: int, *, may_be_root: bool) -> str:
    """Starts the processes on all nodes, with the leader's environment."""
    hosts = ",".join(host.shell.text for host in (node.hosts.leader, *node.hosts.workers))
    remote = f'"-p {ssh.PORT} -o StrictHostKeyChecking=no -i $HOME/.ssh/id_rsa"'
    names = sorted(_FORWARDED | {entry["name"] for entry in container["env"]})
    words: list[Word] = [
        "mpirun",
        *(("--allow-run-as-root",) if may_be_root else ()),
        *("--oversubscribe", "-n", str(processes), "-H", Fragment(hosts)),
        *("--mca", "pml", "ob1", "--mca", "plm_rsh_args", Fragment(remote)),
        *(word for name in names for word in ("-x", name)),
        *("bash", "-c", _command(container)),
    ]
    return line(words)


def _command(container: Object) -> str:
    """What each process runs, as a script: the user's command behind TensorRT-LLM's own launcher."""
    command, args = container.get("command", ()), container.get("args", ())
    if not is_shell(command):
        return shell_line([_LAUNCHER, *command, *users_parts(args)])
    script = " ".join(args)
    place = _start_of_framework(script)
    return f"{script[:place]}{_LAUNCHER} {script[place:]}"


def _start_of_framework(script: str) -> int:
    """Where the first Python that starts the framework begins, with its path; 0 if there is none.

    That is the first match of `(\\S*/)?python[0-9.]*\\s+[^|&;]*dynamo\\.trtllm`. As one pattern it would take
    time that grows with the square of a text that users choose, so its parts are searched one by one.
    """
    end = 0
    while python := _STARTS_PYTHON.search(script, end):
        separator = _SEPARATOR.search(script, python.end())
        end = separator.start() if separator else len(script)
        if script.find("dynamo.trtllm", python.end(), end) < 0:
            continue
        start = python.start()
        has_path = script.endswith("/", 0, start)
        return 1 + max(script.rfind(each, 0, start) for each in _SPACES) if has_path else start
    return 0
