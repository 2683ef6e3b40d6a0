"""TensorRT-LLM: on several nodes the leader starts all processes with mpirun, over SSH.

The user's command is quoted twice: for the leader's shell, and for the shell that mpirun starts on every
node. SSH must work for any user and home directory. A shell and ssh resolve `~` differently (ssh reads
the password file, a shell `$HOME`), so every path uses `$HOME`. It is not quoted, because a home
directory with spaces cannot work: mpirun splits the arguments of ssh at spaces.
"""

import re
from collections.abc import Mapping

from dynamo_operator.component.framework import is_shell
from dynamo_operator.component.launch import (
    SHELL,
    Fragment,
    GroupNode,
    Word,
    shell_line,
    users_words,
    without_default_port,
)
from dynamo_operator.component.objects import variable
from dynamo_operator.component.plan import Backend, ComponentPlan
from dynamo_operator.names import volume_name
from kube_runtime.types.meta import Object

_LAUNCHER = "trtllm-llmapi-launch"
_STARTS_PYTHON = re.compile(r"python[0-9.]*\s", re.ASCII)
_SEPARATOR = re.compile(r"[|&;]")
_SPACES = " \t\n\r\f\v"
_DNS_SECONDS = 300
_SSH_PORT = 2222
_SSH_KEYS = "/ssh-pk"
"""Mount path of the Secret with `private.key` and `private.key.pub`."""

_FORWARDED = frozenset(
    (
        *("CPATH", "CUDA_VISIBLE_DEVICES", "HOME", "LD_LIBRARY_PATH", "MODEL_PATH", "PATH", "PYTHONPATH"),
        *("HF_DATASETS_CACHE", "HF_ENDPOINT", "HF_HOME", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
        *("NCCL_DEBUG", "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "TENSORRT_LLM_CACHE_DIR"),
        *("TOKENIZERS_PARALLELISM", "TRANSFORMERS_CACHE", "TRITON_PTXAS_PATH"),
        *("TRTLLM_USE_UCX_KVCACHE", "USER"),
    )
)
"""Variables of the leader that all processes get, in addition to those of the container."""

_FULL_NAMES = variable("OMPI_MCA_orte_keep_fqdn_hostnames", "1")
_WORKER_READINESS: Object = {
    "tcpSocket": {"port": _SSH_PORT},
    "initialDelaySeconds": 20,
    "periodSeconds": 20,
    "timeoutSeconds": 5,
    "failureThreshold": 10,
}


def _launch(container: Object, plan: ComponentPlan, node: GroupNode) -> Object:
    keys = {"name": volume_name(plan.settings.mpi_secret_name), "mountPath": _SSH_KEYS, "readOnly": True}
    users = container.get("volumeMounts", ())
    mounts = [mount for mount in users if mount.get("mountPath") != _SSH_KEYS]
    variables = [entry for entry in container["env"] if entry["name"] != _FULL_NAMES["name"]]
    common = {**container, "env": [*variables, _FULL_NAMES], "volumeMounts": [*mounts, keys]}
    may_be_root = _may_be_root(container, plan.pod)
    if node.is_leader:
        run = _mpirun(common, node, node.count * plan.gpus, may_be_root=may_be_root)
        steps = ["mkdir -p $HOME/.ssh", *_ssh_client(), *_workers_resolve(node), run]
        return {**common, "command": list(SHELL), "args": [" && ".join(steps)]}
    folders = "mkdir -p $HOME/.ssh $HOME/.ssh/host_keys $HOME/.ssh/run"
    steps = [folders, *_ssh_client(), *_ssh_server(may_be_root=may_be_root)]
    dropped = ("livenessProbe", "startupProbe")
    return {
        **without_default_port({key: field for key, field in common.items() if key not in dropped}),
        "command": list(SHELL),
        "args": [" && ".join(steps)],
        "readinessProbe": _WORKER_READINESS,
    }


def _launch_volumes(plan: ComponentPlan) -> list[Object]:
    name = plan.settings.mpi_secret_name
    return [{"name": volume_name(name), "secret": {"secretName": name, "defaultMode": 0o644}}]


# As root, mpirun and sshd need flags. Without a setting the image decides.
def _may_be_root(container: Object, pod: Object) -> bool:
    context: Object = {}
    for level in (pod, container):
        security_context = level.get("securityContext")
        context |= security_context if isinstance(security_context, Mapping) else {}
    user = context.get("runAsUser")
    return context.get("runAsNonRoot") is not True if user is None else user == 0


def _ssh_client() -> list[str]:
    config = f"Host *\\nIdentityFile $HOME/.ssh/id_rsa\\nStrictHostKeyChecking no\\nPort {_SSH_PORT}\\n"
    return [
        f"ls -la {_SSH_KEYS}/",
        f"cp {_SSH_KEYS}/private.key $HOME/.ssh/id_rsa",
        f"cp {_SSH_KEYS}/private.key.pub $HOME/.ssh/id_rsa.pub",
        f"cp {_SSH_KEYS}/private.key.pub $HOME/.ssh/authorized_keys",
        "chmod 600 $HOME/.ssh/id_rsa $HOME/.ssh/authorized_keys",
        "chmod 644 $HOME/.ssh/id_rsa.pub $HOME/.ssh/authorized_keys",
        f'printf "{config}" > $HOME/.ssh/config',
    ]


def _ssh_server(*, may_be_root: bool) -> list[str]:
    keys = {kind: f"$HOME/.ssh/host_keys/ssh_host_{kind}_key" for kind in ("rsa", "ecdsa", "ed25519")}
    options = (
        f"Port {_SSH_PORT}",
        *(f"HostKey {key}" for key in keys.values()),
        "PidFile $HOME/.ssh/run/sshd.pid",
        f"PermitRootLogin {'yes' if may_be_root else 'no'}",
        "PasswordAuthentication no",
        "PubkeyAuthentication yes",
        "StrictModes no",  # fsGroup makes volumes writable for the group
        "AuthorizedKeysFile $HOME/.ssh/authorized_keys",
    )
    config = "".join(f"{option}\\n" for option in options)
    return [
        # sshd requires this directory as root; other users neither need it nor can create it
        "{ mkdir -p /run/sshd 2>/dev/null || true; }",
        "rm -f $HOME/.ssh/host_keys/*",
        *(f"ssh-keygen -t {kind} -f {key} -N ''" for kind, key in keys.items()),
        f'printf "{config}" > $HOME/.ssh/sshd_config',
        "/usr/sbin/sshd -D -f $HOME/.ssh/sshd_config",
    ]


# The braces group the step, so that an earlier failure skips it as a whole.
def _workers_resolve(node: GroupNode) -> list[str]:
    if not node.hosts.names_come_late:
        return []
    workers = shell_line(node.hosts.workers)
    step = (
        f"{{ TIMEOUT={_DNS_SECONDS}; START_TIME=$(date +%s); "
        f"for worker in {workers}; do "
        'echo "Waiting for DNS: $worker"; '
        "until getent hosts $worker >/dev/null 2>&1; do "
        "CURRENT_TIME=$(date +%s); "
        "if [ $((CURRENT_TIME - START_TIME)) -gt $TIMEOUT ]; then "
        'echo "ERROR: Timeout waiting for DNS: $worker"; exit 1; fi; '
        'echo "DNS not ready for $worker, retrying..."; sleep 2; done; '
        'echo "✓ DNS resolved: $worker"; done; '
        'echo "All workers DNS ready"; }'
    )
    return [step]


def _mpirun(container: Object, node: GroupNode, processes: int, *, may_be_root: bool) -> str:
    hosts = ",".join(host.text for host in (node.hosts.leader, *node.hosts.workers))
    remote = f'"-p {_SSH_PORT} -o StrictHostKeyChecking=no -i $HOME/.ssh/id_rsa"'
    names = sorted(_FORWARDED | {entry["name"] for entry in container["env"]})
    words: list[Word] = [
        "mpirun",
        *(("--allow-run-as-root",) if may_be_root else ()),
        *("--oversubscribe", "-n", str(processes), "-H", Fragment(hosts)),
        *("--mca", "pml", "ob1", "--mca", "plm_rsh_args", Fragment(remote)),
        *(word for name in names for word in ("-x", name)),
        *("bash", "-c", _command(container)),
    ]
    return shell_line(words)


def _command(container: Object) -> str:
    command, args = container.get("command", ()), container.get("args", ())
    if not is_shell(command):
        return shell_line([_LAUNCHER, *command, *users_words(args)])
    script = " ".join(args)
    place = _start_of_framework(script)
    return f"{script[:place]}{_LAUNCHER} {script[place:]}"


# Equivalent to the first match of `(\S*/)?python[0-9.]*\s+[^|&;]*dynamo\.trtllm`, which would take
# quadratic time in a text that users choose; 0 without one.
def _start_of_framework(script: str) -> int:
    end = 0
    while python := _STARTS_PYTHON.search(script, end):
        separator = _SEPARATOR.search(script, python.end())
        end = separator.start() if separator else len(script)
        if script.find("dynamo.trtllm", python.end(), end) < 0:
            continue
        start = python.start()
        has_path = script.endswith("/", 0, start)
        return 1 + max(script.rfind(space, 0, start) for space in _SPACES) if has_path else start
    return 0


# Workers need not wait for their leader, which starts last and connects to them.
BACKEND = Backend(_launch, launch_volumes=_launch_volumes, starts_leader_last=True)
