"""Check what a cluster lacks for an installation, from an inventory. Each finding has a remedy.

The names of the first four are those of the reference's `pre-deployment-check.sh`, which scripts look for.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from dynamoctl.installation.inventory import Pod, StorageClass
from kube_runtime.types.core import Node

CONNECTIVITY = "kubectl Connectivity"
STORAGE = "Default StorageClass"
GPUS = "Cluster GPU Resources"
GPU_OPERATOR = "GPU Operator"
VERSION = "Kubernetes Version"
NAMESPACES = "Namespaces with an operator of their own"
PERMISSIONS = "Permissions"

OLDEST = (1, 27)
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_GPU_LABEL = "nvidia.com/gpu.present"
_GPU = "nvidia.com/gpu"


class CheckResult(Enum):
    """How a check ended. A warning passes."""

    OK = "ok"
    WARNING = "warning"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found, and what to do about it. An empty `remedy` means: nothing."""

    name: str
    verdict: CheckResult
    text: str
    remedy: str = ""


def kubernetes_version(version: str) -> Finding:
    """Whether the API server is new enough. `version` is its own word, such as `v1.36.3`."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    is_new = found is not None and (int(found[1]), int(found[2])) >= OLDEST
    oldest = ".".join(map(str, OLDEST))
    if is_new:
        return Finding(VERSION, CheckResult.OK, version)
    return Finding(VERSION, CheckResult.FAIL, f"{version} is too old", f"use {oldest} or newer")


def default_storage(classes: Sequence[StorageClass]) -> Finding:
    """Whether a PVC without a storage class gets a default."""
    names = sorted(each.metadata.name for each in classes)
    default = sorted(
        each.metadata.name for each in classes if each.metadata.annotations.get(_DEFAULT) == "true"
    )
    if len(default) == 1:
        return Finding(STORAGE, CheckResult.OK, default[0])
    if default:
        text = f"there are several: {', '.join(default)}"
        return Finding(STORAGE, CheckResult.WARNING, text, "remove the annotation from all but one")
    if not names:
        remedy = "install a storage provisioner; only graphs with PVCs need one"
        return Finding(STORAGE, CheckResult.FAIL, "no StorageClass found", remedy)
    text = f"none of {', '.join(names)}"
    patch = json.dumps({"metadata": {"annotations": {_DEFAULT: "true"}}})
    remedy = f"kubectl patch storageclass {names[0]} -p '{patch}'"
    return Finding(STORAGE, CheckResult.FAIL, text, remedy)


def gpus(nodes: Sequence[Node]) -> Finding:
    """Whether there are nodes with GPUs, and how many GPUs pods can have."""
    found = [each for each in nodes if each.metadata.labels.get(_GPU_LABEL) == "true"]
    if not found:
        remedy = f"install the NVIDIA GPU operator, which labels nodes with {_GPU_LABEL}=true"
        return Finding(GPUS, CheckResult.FAIL, "no node reports GPUs", remedy)
    count = sum(int(each.status.allocatable.get(_GPU, "0")) for each in found)
    return Finding(GPUS, CheckResult.OK, f"{count} GPUs on {len(found)} nodes")


def gpu_operator(pods: Sequence[Pod]) -> Finding:
    """Whether the GPU operator runs."""
    running = sum(each.status.phase == "Running" for each in pods)
    text = f"{running} of {len(pods)} pods run"
    if pods and running == len(pods):
        return Finding(GPU_OPERATOR, CheckResult.OK, text)
    if running:
        return Finding(
            GPU_OPERATOR, CheckResult.WARNING, text, "kubectl get pods -A -l app=gpu-operator"
        )
    text = text if pods else "no pods found with app=gpu-operator"
    return Finding(GPU_OPERATOR, CheckResult.FAIL, text, "install the NVIDIA GPU operator")


def own_operators(namespaces: Collection[str]) -> Finding:
    """Where an operator of one namespace works, and a cluster-wide one will not."""
    return Finding(NAMESPACES, CheckResult.OK, ", ".join(sorted(namespaces)) or "none")


def permissions(missing: Sequence[str], account: str) -> Finding:
    """Whether the operator's ServiceAccount has the permissions that the operator needs."""
    if not missing:
        return Finding(PERMISSIONS, CheckResult.OK, f"{account} has all permissions that it needs")
    text = f"{account} lacks: {'; '.join(missing)}"
    return Finding(
        PERMISSIONS, CheckResult.FAIL, text, "compare its roles with docs/permissions.md"
    )


def unreachable(words: str) -> list[Finding]:
    """What can be said of a cluster that does not answer."""
    others = (STORAGE, GPUS, GPU_OPERATOR)
    return [
        Finding(CONNECTIVITY, CheckResult.FAIL, words, "kubectl cluster-info"),
        *(Finding(each, CheckResult.FAIL, "not checked") for each in others),
    ]


def headline(findings: Sequence[Finding]) -> str:
    """The first line: what failed, or that nothing did."""
    failed = [each.name for each in findings if each.verdict is CheckResult.FAIL]
    warned = sum(each.verdict is CheckResult.WARNING for each in findings)
    warnings = f"; {warned} warning{'' if warned == 1 else 's'}" if warned else ""
    if not failed:
        return f"No check failed{warnings}."
    return f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}{warnings}."


def summary(findings: Sequence[Finding]) -> str:
    """The last line."""
    failed = sum(each.verdict is CheckResult.FAIL for each in findings)
    return f"Summary: {len(findings) - failed} passed, {failed} failed"
