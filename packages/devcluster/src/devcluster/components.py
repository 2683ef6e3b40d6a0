"""The processes of the control plane: command lines, files that they read, questions to the API server.

All listen on the loopback address only, or not at all. Settings that differ from those of a cluster make it
quick to start and safe to throw away; a comment says why.
"""

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

import yaml

from devcluster.certificates import Authority, Pair, new_authority, write_key_pair, write_private
from devcluster.layout import LOOPBACK, Layout, Plan
from devcluster.processes import completed
from kube_runtime.errors import OperatorError

_PROBE_TIMEOUT_SECONDS = 5.0


class KubectlError(OperatorError):
    """kubectl failed; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with the credentials of one kubeconfig file."""

    program: Path
    kubeconfig: Path
    cache: Path

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run kubectl and return what it prints. Raises: KubectlError."""
        flags = (f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}")
        result = completed([self.program, *flags, *arguments], stdin=stdin)
        if result.returncode:
            message = " ".join(result.stderr.split()) or f"exit code {result.returncode}"
            raise KubectlError(f"kubectl {arguments[0]}: {message}")
        return result.stdout

    def apply(self, *files: Path) -> None:
        """Apply the objects in these files with server-side apply."""
        if files:
            self("apply", "--server-side", "--force-conflicts", *(f"--filename={f}" for f in files))


def kubeconfig(
    *, name: str, server: str, authority: bytes, credential: Pair | str, namespace: str = "default"
) -> bytes:
    """A kubeconfig file with one context and everything embedded, so that it can be copied anywhere.

    A `credential` that is a string is a bearer token.
    """
    user = (
        {"token": credential}
        if isinstance(credential, str)
        else {
            "client-certificate-data": _base64(credential.certificate),
            "client-key-data": _base64(credential.key),
        }
    )
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "current-context": name,
    }
    return yaml.safe_dump(content, sort_keys=False).encode()


def is_ready(port: int, authority: Path) -> bool:
    """Whether the API server on this port reports that it is ready."""
    return _get(port, authority, "/readyz") is not None


def server_version(port: int, authority: Path) -> str | None:
    """The version of the API server on this port, or None if it does not answer."""
    body = _get(port, authority, "/version")
    return None if body is None else str(json.loads(body)["gitVersion"])


def _get(port: int, authority: Path, path: str) -> bytes | None:
    """The body of a path that is open to clients without credentials, or None without a successful answer."""
    try:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            LOOPBACK, port, timeout=_PROBE_TIMEOUT_SECONDS, context=context
        )
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return None
    return body if response.status == http.client.OK else None


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


MANIFESTS = Path(__file__).with_name("manifests")
SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = IPv4Address("10.96.0.1")  # of the Service kubernetes.default, the network's first
POD_NETWORK = "10.128.0.0/14"

CLIENT_NAME = "kube-apiserver"
"""The common name of the client certificate that the API server presents to admission webhooks."""
_WEBHOOK_CA, _WEBHOOK_CLIENT, _ADMISSION = "webhook-clients-ca", "webhook-client", "admission.json"

USERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kwok": ("kwok", ()),
}
"""Kubeconfig file → user and groups. The API server creates the roles of the controllers."""


def write_credentials(
    layout: Layout,
    plan: Plan,
    instance: str,
    users: Mapping[str, tuple[str, tuple[str, ...]]] = USERS,
    addresses: Sequence[IPv4Address] = (),
) -> Authority:
    """Write all keys, certificates and kubeconfig files of an instance; return the API server's CA.

    `addresses` are those of the API server beside the loopback address.
    """
    local = ("localhost", IPv4Address(LOOPBACK))
    service = tuple(f"kubernetes{end}" for end in ("", ".default", ".default.svc"))
    authority = new_authority("dynamo-operator control plane")
    etcd_authority = new_authority("dynamo-operator etcd")
    pairs = {
        "ca": authority.pair,
        "etcd-ca": etcd_authority.pair,
        "kube-apiserver": authority.issue(
            "kube-apiserver", hosts=(*local, *service, SERVICE_ADDRESS, *addresses)
        ),
        "etcd": etcd_authority.issue("etcd", hosts=local),
        "etcd-client": etcd_authority.issue("kube-apiserver"),
    }
    for file, (user, groups) in users.items():
        pairs[file] = authority.issue(user, groups=groups)
        content = kubeconfig(
            name=f"dynamo-{instance}",
            server=plan.server,
            authority=authority.pair.certificate,
            credential=pairs[file],
        )
        write_private(layout.kubeconfigs / f"{file}.yaml", content)
    for name, pair in pairs.items():
        pair.write(layout.pki, name)
    write_key_pair(layout.pki, "service-account")
    _write_webhook_client(layout)
    return authority


def _write_webhook_client(layout: Layout) -> None:
    """Its CA signs nothing else, so that webhooks can tell the API server from a pod (docs/admission.md)."""
    authority = new_authority("dynamo-operator webhook clients")
    authority.pair.write(layout.pki, _WEBHOOK_CA)
    authority.issue(CLIENT_NAME).write(layout.pki, _WEBHOOK_CLIENT)
    files = {
        "client-certificate": str(layout.pki / f"{_WEBHOOK_CLIENT}.crt"),
        "client-key": str(layout.pki / f"{_WEBHOOK_CLIENT}.key"),
    }
    webhook_kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": "*", "user": files}],  # for the webhooks of every host
    }
    file = layout.kubeconfigs / "webhooks.yaml"
    write_private(file, json.dumps(webhook_kubeconfig).encode())
    plugin = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(file),
    }
    content = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": "ValidatingAdmissionWebhook", "configuration": plugin}],
    }
    write_private(layout.pki / _ADMISSION, json.dumps(content).encode())


def etcd(layout: Layout, plan: Plan) -> list[str]:
    """Arguments of etcd."""
    clients = f"https://{LOOPBACK}:{plan.etcd_port}"
    peers = f"https://{LOOPBACK}:{plan.etcd_peer_port}"
    return [
        f"--data-dir={layout.data}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--client-cert-auth",
        "--peer-client-cert-auth",
        *(f"--{prefix}cert-file={layout.pki / 'etcd.crt'}" for prefix in ("", "peer-")),
        *(f"--{prefix}key-file={layout.pki / 'etcd.key'}" for prefix in ("", "peer-")),
        *(f"--{prefix}trusted-ca-file={layout.pki / 'etcd-ca.crt'}" for prefix in ("", "peer-")),
        "--unsafe-no-fsync",  # only a crash of the machine loses data
        "--log-level=warn",
    ]


def kube_apiserver(layout: Layout, plan: Plan) -> list[str]:
    """Arguments of kube-apiserver."""
    pki = layout.pki
    return [
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",  # else it needs a default route to find one
        "--endpoint-reconciler-type=none",  # a loopback address is not a valid endpoint
        f"--secure-port={plan.server_port}",
        f"--cert-dir={layout.scratch}",
        f"--tls-cert-file={pki / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pki / 'kube-apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--etcd-servers=https://{LOOPBACK}:{plan.etcd_port}",
        f"--etcd-cafile={pki / 'etcd-ca.crt'}",
        f"--etcd-certfile={pki / 'etcd-client.crt'}",
        f"--etcd-keyfile={pki / 'etcd-client.key'}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-account.pub'}",
        f"--service-account-signing-key-file={pki / 'service-account.key'}",
        f"--audit-policy-file={MANIFESTS / 'audit-policy.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-maxbackup=2",
        f"--admission-control-config-file={layout.pki / _ADMISSION}",
        "--profiling=false",
    ]


def write_egress_selector(layout: Layout) -> None:
    """Write where the API server connects to nodes, pods and Services: at the kubelet's proxy only.

    A relative path: that of a socket may have 107 bytes at most.
    """
    uds = {"udsName": str(egress_socket(layout).relative_to(layout.folder))}
    proxy = {"proxyProtocol": "HTTPConnect", "transport": {"uds": uds}}
    content = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": proxy}],
    }
    write_private(_egress_settings(layout), json.dumps(content).encode())


def egress_socket(layout: Layout) -> Path:
    """The socket of the proxy for connections of the API server."""
    return layout.records / "egress.sock"


def egress_flags(layout: Layout) -> list[str]:
    """What keeps connections of the API server to pods and nodes on this machine."""
    return [f"--egress-selector-config-file={_egress_settings(layout)}"]


def _egress_settings(layout: Layout) -> Path:
    return layout.scratch / "egress.json"


def kube_controller_manager(layout: Layout, _: Plan) -> list[str]:
    """Arguments of kube-controller-manager."""
    return [
        f"--kubeconfig={layout.kubeconfigs / 'kube-controller-manager.yaml'}",
        f"--root-ca-file={layout.pki / 'ca.crt'}",
        f"--service-account-private-key-file={layout.pki / 'service-account.key'}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",  # there is no other candidate
        "--secure-port=0",  # there are no clients
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--profiling=false",
    ]


def kube_scheduler(layout: Layout, _: Plan) -> list[str]:
    """Arguments of kube-scheduler."""
    return [f"--config={_scheduler_settings(layout)}", "--secure-port=0"]


def write_scheduler_settings(layout: Layout) -> None:
    """Write the scheduler's settings that have no flags.

    Pods of groups request the scheduler `volcano`, which does not run here. A second profile of that name
    schedules them, one by one instead of as a gang.
    """
    file = str(layout.kubeconfigs / "kube-scheduler.yaml")
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": file, "qps": 200, "burst": 400},
        "leaderElection": {"leaderElect": False},
        "enableProfiling": False,
        "profiles": [{"schedulerName": name} for name in ("default-scheduler", "volcano")],
    }
    write_private(_scheduler_settings(layout), json.dumps(content).encode())


def _scheduler_settings(layout: Layout) -> Path:
    return layout.scratch / "kube-scheduler.json"


def kwok(layout: Layout, _: Plan) -> list[str]:
    """Arguments of kwok."""
    return [
        f"--kubeconfig={layout.kubeconfigs / 'kwok.yaml'}",
        f"--config={MANIFESTS / 'kwok-stages.yaml'}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--node-ip={LOOPBACK}",  # requests for a node's logs must not reach another machine
        f"--cidr={POD_NETWORK}",
    ]


KUBELET = "local-kubelet"


def kubelet(layout: Layout, plan: Plan) -> list[str]:
    """Arguments of Python for the kubelet of the simulated nodes."""
    return [
        *("-m", "devcluster.kubelet"),
        f"--folder={layout.folder}",
        f"--server={plan.server}",
        f"--kubeconfig={layout.kubeconfigs / 'kwok.yaml'}",
        f"--simulated={POD_NETWORK}",
    ]


ARGUMENTS: Mapping[str, Callable[[Layout, Plan], list[str]]] = {
    "etcd": etcd,
    "kube-apiserver": kube_apiserver,
    "kube-controller-manager": kube_controller_manager,
    "kube-scheduler": kube_scheduler,
    "kwok": kwok,
    KUBELET: kubelet,
}
"""Program → its arguments, in the order in which they start."""
