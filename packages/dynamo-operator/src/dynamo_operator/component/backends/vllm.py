"""vLLM: the path of its compilation cache, and the launch on several nodes.

The launch depends on the parallelism flags of the user's command. A copy of the model that needs more
GPUs than a node has runs on Ray; several copies that need more together run data parallel; anything else
runs on each node separately.
"""

import re

from dynamo_operator.component.framework import Mode, is_shell, mode, parallelism
from dynamo_operator.component.launch import (
    SHELL,
    Fragment,
    GroupNode,
    Word,
    in_script,
    shell_line,
    users_words,
    with_flags,
    without_default_port,
    without_probes,
)
from dynamo_operator.component.objects import variable
from dynamo_operator.component.plan import Backend, ComponentPlan, LeaderService
from kube_runtime.types.meta import Object

CACHE_VARIABLE = "VLLM_CACHE_ROOT"

_RAY_PORT = 6379
_DATA_PARALLEL_PORT = 13445
_RAY_EXECUTOR = ("--distributed-executor-backend", "ray")
_STARTS_PYTHON = re.compile(r"python[0-9.]*\s", re.ASCII)
_ENDS_A_SIMPLE_COMMAND = "|&;\n'\""


def _container(container: Object, plan: ComponentPlan) -> Object:
    caches = [mount.path for mount in plan.mounts if mount.is_cache]
    environment = container["env"]
    if not caches or any(CACHE_VARIABLE == entry["name"] for entry in environment):
        return container
    return {**container, "env": [*environment, variable(CACHE_VARIABLE, caches[0])]}


def _launch(container: Object, plan: ComponentPlan, node: GroupNode) -> Object:
    sizes = parallelism(container)
    match mode(plan.gpus, sizes):
        case Mode.RAY:
            join = f"ray start --address={node.hosts.leader.text}:{_RAY_PORT} --block"
            worker = {**without_default_port(container), "command": list(SHELL), "args": [join]}
            started = _ray_leader(container) if node.is_leader else worker
        case Mode.DATA_PARALLEL:
            started = with_flags(container, _ranks(plan.gpus // sizes.cut, node), "vllm")
        case Mode.ALONE:
            started = container
    return started if node.is_leader else without_probes(started)


# Workers would give up on either after some minutes. Source: `HANDSHAKE_TIMEOUT_MINS` of
# `vllm/v1/engine/core.py` is 5.
def _leader_service(plan: ComponentPlan) -> LeaderService | None:
    match mode(plan.gpus, parallelism(plan.main_container)):
        case Mode.RAY:
            return LeaderService(_RAY_PORT, is_ray=True)
        case Mode.DATA_PARALLEL:
            return LeaderService(_DATA_PARALLEL_PORT)
        case Mode.ALONE:
            return None


def _ray_leader(container: Object) -> Object:
    command, args = container.get("command", ()), container.get("args", ())
    start = f"ray start --head --port={_RAY_PORT}"
    if not is_shell(command):
        script = shell_line([*command, *users_words(args), *_RAY_EXECUTOR])
        return {**container, "command": list(SHELL), "args": [f"{start} && {script}"]}
    script = " ".join(args).rstrip()
    if _ends_simply(script):
        script = f"{script} {shell_line(_RAY_EXECUTOR)}"
    else:
        script = in_script(script, _RAY_EXECUTOR, "vllm")
    return {**container, "args": [f"{start} && {script}"]}


# Whether the script ends in one plain command that starts vLLM, so that flags can be appended.
# Equivalent to a match of `python[0-9.]*\s[^|&;\n'"]*dynamo\.vllm[^|&;\n'"]*` at the end, which
# would take quadratic time in a text that users choose.
def _ends_simply(script: str) -> bool:
    last = max(map(script.rfind, _ENDS_A_SIMPLE_COMMAND))
    begin = last + 1
    if script[last:begin] == "\n":  # the space after `python` may be a line break
        word = script[:last].rstrip("0123456789.")
        begin = len(word.removesuffix("python")) if word.endswith("python") else begin
    python = _STARTS_PYTHON.search(script, begin)
    return python is not None and script.find("dynamo.vllm", python.end()) >= 0


def _ranks(local: int, node: GroupNode) -> list[Word]:
    # The total number of copies is a flag of the user.
    first: Word = "0"
    if not node.is_leader:
        first = Fragment(f"$(( {local} * {node.hosts.rank_term} ))")
    return [
        *("--data-parallel-hybrid-lb", "--data-parallel-size-local", str(local)),
        *("--data-parallel-start-rank", first),
        *("--data-parallel-address", node.hosts.leader),
        *("--data-parallel-rpc-port", str(_DATA_PARALLEL_PORT)),
    ]


BACKEND = Backend(_launch, container=_container, leader_service=_leader_service)
