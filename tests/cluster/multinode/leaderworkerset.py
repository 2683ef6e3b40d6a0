"""The real LeaderWorkerSet controller beside a local control plane, for tests; built on first use.

Its webhooks number the pods and set their leader's address. In a cluster the API server calls them through a
Service; here it calls the process on the loopback address, with a certificate that we issue.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

from devcluster.certificates import Authority, Pair
from devcluster.components import KubectlError
from devcluster.instance import Instance
from devcluster.layout import LOOPBACK, free_ports
from devcluster.processes import Process, ProcessError, first_ended, stop
from devcluster.programs import Pinned, build
from devcluster.progress import SILENT
from devcluster.startup import READY_SECONDS
from kube_runtime.types.meta import Object

NAME = "leaderworkerset"
SOURCE = Pinned(
    Path(__file__).with_name("gomodule-lws"),
    "the LeaderWorkerSet controller",
    "sigs.k8s.io/lws",
    named={"cmd": NAME},
)
_GROUP = "leaderworkerset.x-k8s.io"
_RETRY_SECONDS = 0.3

_SETS = ({"apiGroups": [_GROUP], "resources": ["leaderworkersets"]}, f"{_GROUP.replace('.', '-')}-v1-{NAME}")
_PODS = ({"apiGroups": [""], "resources": ["pods"]}, "-v1-pod")
_WEBHOOKS: tuple[tuple[str, Object, str, list[str]], ...] = (
    ("mutate", *_SETS, ["CREATE", "UPDATE"]),
    ("mutate", *_PODS, ["CREATE"]),
    ("validate", *_SETS, ["CREATE", "UPDATE"]),
    ("validate", *_PODS, ["CREATE", "UPDATE"]),
)
"""Type, resources, end of the path and operations of each. Source: config/webhook of its release."""

_PROBE = {
    "apiVersion": f"{_GROUP}/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "probe", "namespace": "default"},
    "spec": {
        "leaderWorkerTemplate": {
            "size": 1,
            "workerTemplate": {"spec": {"containers": [{"name": "main", "image": "probe"}]}},
        }
    },
}


@contextmanager
def running(instance: Instance, folder: Path) -> Iterator[None]:
    """Run the controller, which is built if need be, with its files in `folder`; the CRD must be installed.

    Raises: ConfigError, ProcessError, KubectlError.
    """
    program = build(SILENT, SOURCE) / NAME
    (port,) = free_ports(1)
    authority = Authority(Pair.read(instance.pki, "ca"))
    authority.issue(NAME, hosts=(IPv4Address(LOOPBACK),)).write(folder, "tls")
    configuration, registration = folder / "settings.json", folder / "webhooks.json"
    configuration.write_text(json.dumps(settings(port, folder)))
    registration.write_text(json.dumps(webhooks(port, authority.pair.certificate)))
    process = Process(NAME, folder, folder)
    variables = {"HOME": str(folder), "KUBECONFIG": str(instance.kubeconfig)}
    process.start([program, f"--config={configuration}"], variables)
    try:
        instance.kubectl(*("apply", "--server-side", f"--filename={registration}"))
        _wait(process, instance)
        yield
    finally:
        stop([process])


def settings(port: int, certificates: Path) -> Object:
    return {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "webhook": {"host": LOOPBACK, "port": port, "certDir": str(certificates)},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": "0"},
    }


def webhooks(port: int, authority: bytes) -> Object:
    """The webhook configurations, as a List."""
    items = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": NAME},
            "webhooks": [
                _webhook(f"https://{LOOPBACK}:{port}/{verb}-{end}", authority, rule, operations)
                for verb, rule, end, operations in _WEBHOOKS
                if verb == type_
            ],
        }
        for type_, kind in (
            ("mutate", "MutatingWebhookConfiguration"),
            ("validate", "ValidatingWebhookConfiguration"),
        )
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _webhook(url: str, authority: bytes, rule: Object, operations: list[str]) -> Object:
    """One webhook. It selects only pods of groups, because others must start without this process too."""
    of_a_set = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    is_for_pods = rule["resources"] == ["pods"]
    return {
        "name": f"{'pod' if is_for_pods else 'set'}.{_GROUP}",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": [{**rule, "apiVersions": ["v1"], "operations": operations}],
        "objectSelector": {"matchExpressions": [of_a_set] if is_for_pods else []},
    }


def _wait(process: Process, instance: Instance) -> None:
    """Retry a server-side dry run until the webhooks respond."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            instance.kubectl(*("create", "--dry-run=server", "--filename=-"), stdin=json.dumps(_PROBE))
        except KubectlError as error:
            if first_ended([process], within_seconds=_RETRY_SECONDS):
                raise ProcessError(f"{NAME} ended; log: {process.log}") from error
            if time.monotonic() > deadline:
                raise ProcessError(f"{error}; log: {process.log}") from error
        else:
            return
