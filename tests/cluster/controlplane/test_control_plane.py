"""What the control plane must be able to do for the tests of everything else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from devcluster.components import ARGUMENTS, KubectlError
from devcluster.instance import Instance

pytestmark = pytest.mark.cluster

LISTENS = "0A"


class ControlPlane(Protocol):
    """What the fixture offers that these tests use."""

    @property
    def instance(self) -> Instance: ...
    @property
    def kubeconfig(self) -> Path: ...
    @property
    def audit_log(self) -> Path: ...
    def kubectl(self, *args: str | Path, input: str | None = None) -> str: ...  # noqa: A002
    def install_crds(self, names: tuple[str, ...]) -> None: ...


class Within(Protocol):
    """kubectl in the namespace of one test."""

    def __call__(self, *args: str, input: str | None = None) -> str: ...  # noqa: A002


@pytest.fixture
def within(control_plane: ControlPlane, namespace: str) -> Within:
    def kubectl(*args: str, input: str | None = None) -> str:  # noqa: A002
        return control_plane.kubectl(f"--namespace={namespace}", *args, input=input)

    return kubectl


def items(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found


def test_a_service_account_acts_with_its_token_and_may_only_what_it_was_allowed(
    control_plane: ControlPlane, within: Within, namespace: str
) -> None:
    within("create", "serviceaccount", "reader")
    within("create", "role", "reader", "--verb=list", "--resource=pods")
    within("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader")
    kubeconfig = control_plane.instance.service_account_kubeconfig(namespace, "reader")
    as_reader = f"--kubeconfig={kubeconfig}"
    assert f"system:serviceaccount:{namespace}:reader" in within(as_reader, "auth", "whoami")
    assert [] == items(within(as_reader, "get", "pods", "--output=json"))
    with pytest.raises(KubectlError, match="Forbidden"):
        within(as_reader, "get", "secrets")


def test_a_user_with_a_certificate_has_its_name_and_groups(control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.instance.user_kubeconfig("ann", ["testers"])
    told = control_plane.kubectl(f"--kubeconfig={kubeconfig}", "auth", "whoami", "--output=json")
    user = json.loads(told)["status"]["userInfo"]
    assert "ann" == user["username"]
    assert "testers" in user["groups"]


def test_the_root_certificate_is_published_in_a_new_namespace(
    control_plane: ControlPlane, within: Within
) -> None:
    within("wait", "--for=create", "configmap/kube-root-ca.crt", "--timeout=180s")
    published = within("get", "configmap/kube-root-ca.crt", "--output=jsonpath={.data.ca\\.crt}")
    own = (control_plane.instance.pki / "ca.crt").read_text()
    assert own.strip() == published.strip()


def test_the_audit_log_tells_who_asked_for_what(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("get", "pods", f"--namespace={namespace}")
    entries = [json.loads(line) for line in control_plane.audit_log.read_text().splitlines()]
    (entry,) = [
        entry
        for entry in entries
        if entry.get("userAgent", "").startswith("kubectl/")
        and entry["requestURI"].startswith(f"/api/v1/namespaces/{namespace}/pods")
    ]
    assert "list" == entry["verb"]
    assert "admin" == entry["user"]["username"]


def test_nothing_listens_beyond_this_machine(control_plane: ControlPlane) -> None:
    pids = control_plane.instance.status().pids
    listening = {
        f"{name} {address}"
        for name, pid in pids.items()
        if pid is not None
        for address in listening_addresses(pid)
    }
    assert {f"{name} 127.0.0.1" for name in ("etcd", "kube-apiserver")} == listening


def listening_addresses(pid: int) -> Iterator[str]:
    """The addresses that a process listens on; those of version 6 as the kernel writes them."""
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    own = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in own:
                address = fields[1].partition(":")[0]
                octets = bytes.fromhex(address)[::-1]
                yield ".".join(map(str, octets)) if table == "tcp" else address


def test_every_file_is_closed_to_other_users(control_plane: ControlPlane) -> None:
    folder = control_plane.instance.pki.parent
    assert 0o700 == folder.stat().st_mode & 0o777
    private = [*folder.glob("pki/*"), *folder.glob("kubeconfigs/*")]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in private}


def test_kinds_of_other_projects_are_served_with_their_scale(
    control_plane: ControlPlane, within: Within
) -> None:
    control_plane.install_crds(("grove", "kai", "lws", "podgroup"))
    scaling_group = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueScalingGroup",
        "metadata": {"name": "group"},
        "spec": {"replicas": 2, "unknown": {"kept": True}},
    }
    within("create", "--filename=-", input=json.dumps(scaling_group))
    within("scale", "podcliquescalinggroup/group", "--replicas=5")
    stored = json.loads(within("get", "pcsg/group", "--output=json"))
    assert {"replicas": 5, "unknown": {"kept": True}} == stored["spec"]
    assert "" == within("get", "leaderworkersets,podgroups.scheduling.volcano.sh", "--output=name")
    assert "" == control_plane.kubectl("get", "queues.scheduling.run.ai", "--output=name")


def test_an_owned_object_goes_with_an_owner_of_a_kind_just_installed(
    control_plane: ControlPlane, within: Within
) -> None:
    control_plane.install_crds(("grove",))
    owner = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "metadata": {"name": "owner"},
        "spec": {},
    }
    within("create", "--filename=-", input=json.dumps(owner))
    uid = within("get", "pclq/owner", "--output=jsonpath={.metadata.uid}")
    reference = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodClique",
        "name": "owner",
        "uid": uid,
    }
    owned = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": [reference]},
    }
    within("create", "--filename=-", input=json.dumps(owned))
    within("delete", "pclq/owner")
    within("wait", "--for=delete", "configmap/owned", "--timeout=180s")


def test_every_process_runs(control_plane: ControlPlane) -> None:
    status = control_plane.instance.status()
    assert status.is_whole
    assert set(ARGUMENTS) == set(status.pids)
