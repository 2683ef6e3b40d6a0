"""What clients of Kubernetes do with a graph that they read and write in two versions."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from lupa import LuaRuntime

from cluster.conditions import condition
from devcluster.programs import find
from devcluster.progress import SILENT
from kube_runtime.types.meta import Object

Kubectl = Callable[..., str]
_HEALTH = Path(__file__).parents[3] / "examples" / "gitops" / "argocd-health.yaml"


def applied(kubectl: Kubectl, body: Object, manager: str) -> Object:
    """The object after a server-side apply of that field manager without force. Raises KubectlError."""
    arguments = ("apply", "--server-side", f"--field-manager={manager}", "--filename=-", "--output=json")
    answer: Object = json.loads(kubectl(*arguments, input=json.dumps(body)))
    return answer


def appliers(body: Object) -> dict[str, str]:
    """The API version of each field manager that applied."""
    entries = body["metadata"]["managedFields"]
    return {entry["manager"]: entry["apiVersion"] for entry in entries if entry["operation"] == "Apply"}


@contextmanager
def watched(kubeconfig: Path, *arguments: str) -> Iterator[Callable[[str], str]]:
    """A `kubectl get --watch` that runs; the value waits for a line with a text, and returns it."""
    command = [str(find(SILENT)["kubectl"]), f"--kubeconfig={kubeconfig}", "get", "--watch", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # kubectl
        assert process.stdout is not None
        lines = process.stdout

        def line(text: str) -> str:
            return next(line for line in lines if text in line)

        try:
            yield line
        finally:
            process.kill()


def argo_cd(body: Object) -> str:
    """The health of a graph by the script for Argo CD in our examples."""
    (script,) = yaml.safe_load(_HEALTH.read_text(encoding="utf-8"))["data"].values()
    runtime: Any = LuaRuntime  # its stub wants every option
    lua = runtime()
    lua.globals().obj = lua.table_from(body, recursive=True)
    return str(lua.execute(script)["status"])


def flux(body: Object) -> str:
    """The status of an object by the rules of Flux (kstatus)."""
    if body.get("status", {}).get("observedGeneration") != body["metadata"]["generation"]:
        return "InProgress"
    if condition(body, "Stalled").get("status") == "True":
        return "Failed"
    if condition(body, "Reconciling").get("status") == "True":
        return "InProgress"
    return "Current" if condition(body, "Ready").get("status") == "True" else "InProgress"
