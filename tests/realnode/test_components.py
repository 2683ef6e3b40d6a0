import json
import sys
import tomllib
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest
import yaml

from devcluster.components import POD_NETWORK, SERVICE_NETWORK, kube_apiserver
from devcluster.layout import Layout, Plan
from devcluster.progress import Silent
from devcluster.startup import Startup
from kube_runtime.errors import ConfigError
from realnode import machine
from realnode.components import (
    CLUSTER_DOMAIN,
    DNS_ADDRESS,
    KUBELET_CLIENT,
    folder_of,
    write_node_settings,
)
from realnode.machine import NODE_ADDRESS, require_control_groups, require_node_support
from realnode.node import RealInstance, RealStartup, node_images

NODE_MANIFEST = Path(__file__).with_name("node.yaml")
PLAN = Plan(server_port=1, etcd_port=2, etcd_peer_port=3, nodes=0)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(tmp_path / "mine")
    found.create()
    write_node_settings(found, "mine")
    return found


def test_the_api_server_listens_for_pods_only_where_there_are_some(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = kube_apiserver(layout, PLAN)
    assert "--bind-address=127.0.0.1" in fake
    assert "--endpoint-reconciler-type=none" in fake
    assert "kwok" in Startup.names()
    monkeypatch.setattr(RealStartup, "find_programs", staticmethod(lambda _: {}))
    real = RealStartup(layout, PLAN, Silent()).arguments("kube-apiserver")
    last = dict(flag.split("=", 1) for flag in real if "=" in flag)
    assert NODE_ADDRESS == last["--advertise-address"]
    assert "lease" == last["--endpoint-reconciler-type"]
    assert "kwok" not in RealStartup.names()


def test_who_is_not_root_is_refused_before_anything_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="a real node: needs root"):
        RealInstance("mine", tmp_path).up()
    assert [] == list(tmp_path.iterdir())


def test_the_networks_do_not_meet_and_dns_has_its_address(layout: Layout) -> None:
    kubelet = json.loads((folder_of(layout) / "kubelet.json").read_text())
    [network] = (folder_of(layout) / "network").iterdir()
    pods = IPv4Network(json.loads(network.read_text())["plugins"][0]["ipam"]["ranges"][0][0]["subnet"])
    assert [DNS_ADDRESS] == kubelet["clusterDNS"]
    assert IPv4Address(DNS_ADDRESS) in IPv4Network(SERVICE_NETWORK)
    assert pods.subnet_of(IPv4Network(POD_NETWORK))
    assert not pods.overlaps(IPv4Network(SERVICE_NETWORK))
    assert IPv4Address(NODE_ADDRESS) not in pods


def test_what_the_cluster_consists_of_agrees_with_the_settings() -> None:
    objects = list(yaml.safe_load_all(NODE_MANIFEST.read_text()))
    of = {(entry["kind"], entry["metadata"]["name"]): entry for entry in objects}
    assert DNS_ADDRESS == of["Service", "kube-dns"]["spec"]["clusterIP"]
    assert CLUSTER_DOMAIN in of["ConfigMap", "coredns"]["data"]["Corefile"]
    binding = of["ClusterRoleBinding", "dynamo-operator:kubelet-api"]
    assert KUBELET_CLIENT == binding["subjects"][0]["name"]


def test_the_runtime_keeps_the_pause_image_that_it_is_given(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings = tomllib.loads((folder_of(layout) / "containerd.toml").read_text())
    images = settings["plugins"]["io.containerd.cri.v1.images"]
    program = tmp_path / "digest" / "bin" / "program"
    program.parent.mkdir(parents=True)
    program.write_text("")
    found = node_images({"pause": program, "coredns": program})
    assert images["pinned_images"]["sandbox"] in found
    containers = [
        container["image"]
        for entry in yaml.safe_load_all(NODE_MANIFEST.read_text())
        if entry["kind"] == "Deployment"
        for container in entry["spec"]["template"]["spec"]["containers"]
    ]
    assert set(containers) <= set(found)


def test_what_is_not_linux_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ConfigError, match="a real node: needs Linux"):
        require_node_support(Silent())


@pytest.mark.usefixtures("as_root")
def test_a_feature_that_the_kernel_lacks_is_named_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "_KERNEL_CHECKS", {"sheep": "true", "time travel": "false"})
    failures = {"true": "", "false": "no such device"}
    monkeypatch.setattr(machine, "_failure", failures.__getitem__)
    with pytest.raises(ConfigError, match=r"^a real node: this kernel lacks time travel: no such device$"):
        require_node_support(Silent())


@pytest.mark.usefixtures("as_root")
def test_a_package_that_is_not_to_be_had_is_no_word_about_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = tmp_path / "apt-get"
    installer.write_text("#!/bin/sh\necho 'E: no mirror' >&2\nexit 100\n")
    installer.chmod(0o755)
    monkeypatch.setattr(machine, "_PACKAGES", {"unheard-of": ("unheard-of-program",)})
    monkeypatch.setattr(machine, "PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(ConfigError, match=r"^apt-get update: E: no mirror$"):
        require_node_support(Silent())


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root on a machine that has what it takes so far; namespaces are tried without it."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(machine, "require_control_groups", lambda: None)
    monkeypatch.setattr(machine, "_PACKAGES", {})


def test_control_groups_that_are_missing_or_shut_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cpu", "memory"):
        (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match=f"a real node: no control groups for pids below {tmp_path}"):
        require_control_groups(tmp_path)
    (tmp_path / "pids").mkdir()
    require_control_groups(tmp_path)
    monkeypatch.setattr("os.access", lambda path, _: path != tmp_path / "cpu")
    with pytest.raises(ConfigError, match=f"control groups for cpu below {tmp_path} are read-only"):
        require_control_groups(tmp_path)


def test_control_groups_of_the_second_version_are_one_tree(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    with pytest.raises(ConfigError, match="no control groups for pids"):
        require_control_groups(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    require_control_groups(tmp_path)
