"""The programs of a real node: their command lines, and the files that they read.

Nearly every setting is here because the node does not start without it on a small machine: one without
systemd, with control groups of version 1, with fewer capabilities than root usually has, and without a
network.
"""

import json
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from pathlib import Path

from devcluster.certificates import Authority
from devcluster.layout import Layout, Plan
from kube_runtime.types.meta import Object
from realnode.machine import CNI_PROGRAMS, NODE_ADDRESS

NODE_NAME = "node"
DNS_ADDRESS = "10.96.0.10"  # of the Service kube-dns; inside the Services' network
CLUSTER_DOMAIN = "cluster.local"
PAUSE_IMAGE = "localhost/pause:1"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
_POD_NETWORK = "10.128.0.0/16"

NODE_USERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "kubelet": (f"system:node:{NODE_NAME}", ("system:nodes",)),
    "kube-proxy": ("system:kube-proxy", ()),
}
"""Kubeconfig file → user and groups. The API server creates the roles of both."""

KUBELET_CLIENT = "kube-apiserver-kubelet-client"
"""The API server's user for the kubelet; `node.yaml` gives it the role."""


def folder_of(layout: Layout) -> Path:
    """The files of the node, with its /run and /var."""
    return layout.folder / "node"


def write_node_credentials(layout: Layout, authority: Authority) -> None:
    """Write the certificates with which the API server and the kubelet trust each other."""
    address = IPv4Address(NODE_ADDRESS)
    serving = authority.issue(f"system:node:{NODE_NAME}", hosts=(NODE_NAME, address))
    serving.write(layout.pki, "kubelet-server")
    authority.issue(KUBELET_CLIENT).write(layout.pki, KUBELET_CLIENT)


def write_node_settings(layout: Layout, group: str) -> None:
    files = {
        _kubelet_file(layout): json.dumps(_kubelet_settings(layout, group)),
        _proxy_file(layout): json.dumps(_proxy_settings(layout)),
        _network_folder(layout) / "10-pods.conflist": json.dumps(_pod_network()),
        _containerd_file(layout): _containerd_settings(layout),
    }
    for file, content in files.items():
        file.parent.mkdir(exist_ok=True)
        file.write_text(content)


def server_flags(layout: Layout) -> list[str]:
    """What the API server needs so that pods reach it and it reaches the kubelet."""
    return [
        "--bind-address=0.0.0.0",  # in the node's namespace
        f"--advertise-address={NODE_ADDRESS}",
        "--endpoint-reconciler-type=lease",
        "--kubelet-preferred-address-types=InternalIP",  # no DNS resolves the node's name
        f"--kubelet-certificate-authority={layout.pki / 'ca.crt'}",
        f"--kubelet-client-certificate={layout.pki / KUBELET_CLIENT}.crt",
        f"--kubelet-client-key={layout.pki / KUBELET_CLIENT}.key",
    ]


def containerd(layout: Layout, _: Plan) -> list[str]:
    return [f"--config={_containerd_file(layout)}"]


def kubelet(layout: Layout, _: Plan) -> list[str]:
    return [
        f"--config={_kubelet_file(layout)}",
        f"--kubeconfig={layout.kubeconfigs / 'kubelet.yaml'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={NODE_ADDRESS}",
    ]


def kube_proxy(layout: Layout, _: Plan) -> list[str]:
    return [f"--config={_proxy_file(layout)}"]


NODE_ARGUMENTS: Mapping[str, Callable[[Layout, Plan], list[str]]] = {
    "containerd": containerd,
    "kubelet": kubelet,
    "kube-proxy": kube_proxy,
}
"""Program → its arguments, in the order in which they start."""


def _containerd_settings(layout: Layout) -> str:
    """Containerd's TOML. Without restrict_oom_score_adj, no container starts without CAP_SYS_RESOURCE."""
    runtime = 'plugins."io.containerd.cri.v1.runtime"'
    return f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[{runtime}]
restrict_oom_score_adj = true

[{runtime}.cni]
bin_dirs = ["{CNI_PROGRAMS}"]
conf_dir = "{_network_folder(layout)}"

[{runtime}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{runtime}.containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def _kubelet_settings(layout: Layout, group: str) -> Object:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(layout.pki / "kubelet-server.crt"),
        "tlsPrivateKeyFile": str(layout.pki / "kubelet-server.key"),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": "",  # no DNS outside of the cluster
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group}",
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a lower one needs CAP_SYS_RESOURCE
        # No threshold for the disk, which other programs fill as well.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,  # the node could not pull an image again
        "serializeImagePulls": False,
        "readOnlyPort": 0,
    }


def _proxy_settings(layout: Layout) -> Object:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(layout.kubeconfigs / "kube-proxy.yaml")},
        "hostnameOverride": NODE_NAME,
        "clusterCIDR": _POD_NETWORK,
        "mode": "nftables",
        "conntrack": {"maxPerCore": 0, "min": 0},  # leave the limits of the machine
        "oomScoreAdj": 0,
    }


def _pod_network() -> Object:
    """A veth pair and a route per pod. A bridge would need the kernel's bridge filter as well."""
    pair = {
        "type": "ptp",
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": _POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": "/var/lib/cni/networks",
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [pair, ports]}


def _kubelet_file(layout: Layout) -> Path:
    return folder_of(layout) / "kubelet.json"


def _proxy_file(layout: Layout) -> Path:
    return folder_of(layout) / "kube-proxy.json"


def _containerd_file(layout: Layout) -> Path:
    return folder_of(layout) / "containerd.toml"


def _network_folder(layout: Layout) -> Path:
    return folder_of(layout) / "network"
