"""The journeys of who installs: J-01 to J-11 of the acceptance tests, with Helm, kubectl and `dynamoctl`.

| journey | here | in full elsewhere |
|---|---|---|
| J-01 check first | all | judgements: `packages/dynamoctl/tests/installation` |
| J-02 CRDs | all | printed columns: `api/test_schema_on_server.py` |
| J-03 whole cluster | all but its servers | `test_servers_beside.py`; metrics: `test_scraped.py` |
| J-04 one namespace | all | |
| J-05 hand-over | | `tenancy/test_tenancy.py` |
| J-06 two cluster-wide | what is reported | what is refused: `test_rendered.py` |
| J-07 platform services | all | |
| J-08 certificates | (a), (c), (d) | renewal: `admission/`; cert-manager's objects: golden files |
| J-09 webhooks off | all | |
| J-10 upgrade | the check before | `test_installed.py`, `admission/test_changes_under_load.py` |
| J-11 removal | all | |
| J-12 own image | | golden files `air-gapped` and `values-of-the-reference` |
"""

import base64
import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from cluster import person
from cluster.charts.conftest import DEFINITIONS, ONE_VERSION, PLATFORM
from cluster.charts.releases import (
    BESIDE,
    CONFIGURATION,
    DEPLOYMENT,
    RELEASE,
    RESTRICTED,
    call_beside,
    installed,
    pod_of_operator,
    running,
)
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OperatorProcess
from cluster.permitted import refused
from cluster.world import EVENTS, GRAPH, SECRETS, Refused, World
from devcluster.components import KubectlError
from devcluster.layout import free_ports
from devcluster.programs import Helm
from dynamo_operator import version
from kube_runtime.tls import new_authority
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind, Object

ACCOUNTS = Kind("", "v1", "ServiceAccount", "serviceaccounts")
LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
WEBHOOKS = "--set=dynamo-operator.webhook.enabled=true"
WRONG = graph("wrong", Frontend=service("frontend", ingress={"enabled": True}))
DEFAULT = "storageclass.kubernetes.io/is-default-class"

pytestmark = pytest.mark.cluster


def dynamoctl(*arguments: str) -> tuple[int, str]:
    done = person.dynamoctl(*arguments)
    return done.returncode, done.stdout


@contextmanager
def storage(kinds: ControlPlane, **classes: bool) -> Iterator[None]:
    items = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": {DEFAULT: str(is_default).lower()}},
            "provisioner": "example.com/none",
        }
        for name, is_default in classes.items()
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kinds.kubectl("apply", "--server-side", "-f", "-", input=body)
    try:
        yield
    finally:
        kinds.kubectl("delete", "storageclass", *classes)


@contextmanager
def gpu_operator(kinds: ControlPlane, namespace: str, *, is_whole: bool) -> Iterator[None]:
    """Two pods of the GPU operator; not whole means that one is never scheduled."""
    for name, selector in (("one", "{}"), ("two", "{}" if is_whole else '{"never": "there"}')):
        pod = {"spec": {"nodeSelector": json.loads(selector)}}
        kinds.kubectl(
            *("run", name, "--image=i", "--labels=app=gpu-operator", f"--namespace={namespace}"),
            f"--overrides={json.dumps(pod)}",
        )
    running = ("one", "two") if is_whole else ("one",)
    pods = [f"pod/{name}" for name in running]
    kinds.kubectl("wait", *pods, "--for=condition=Ready", f"--namespace={namespace}")
    try:
        yield
    finally:
        kinds.kubectl("delete", "pod", "one", "two", "--now", f"--namespace={namespace}")


def test_j01_check_a_cluster_first(kinds: ControlPlane, namespace: str, tmp_path: Path) -> None:
    nobody = tmp_path / "kubeconfig"
    nobody.write_text(kinds.kubeconfig.read_text("utf-8").replace(kinds.server, "https://127.0.0.1:9"))
    code, said = dynamoctl("check", f"--kubeconfig={nobody}")
    assert (3, "Summary: 0 passed, 4 failed") == (code, said.splitlines()[-1])

    without_operator, _ = dynamoctl("check", f"--kubeconfig={kinds.kubeconfig}")
    assert 1 == without_operator
    ask = ("check", "--before-install", f"--kubeconfig={kinds.kubeconfig}")
    with storage(kinds, fast=False, slow=False):
        code, said = dynamoctl(*ask)
    assert 0 == code
    assert "warning  Default StorageClass: none of fast, slow" in said
    assert "kubectl patch storageclass fast -p " in said
    assert "warning  GPU Operator: no pods found with app=gpu-operator" in said
    with storage(kinds, fast=True, slow=True), gpu_operator(kinds, namespace, is_whole=False):
        code, said = dynamoctl(*ask)
    assert 0 == code
    assert "warning  Default StorageClass: there are several: fast, slow" in said
    assert "warning  GPU Operator: 1 of 2 pods run" in said
    with storage(kinds, fast=True), gpu_operator(kinds, namespace, is_whole=True):
        code, said = dynamoctl(*ask)
    assert 0 == code
    for name in ("kubectl Connectivity", "Default StorageClass", "Cluster GPU Resources", "GPU Operator"):
        assert f"ok       {name}: " in said
    assert said.splitlines()[-1].endswith(" passed, 0 failed")


def explained(kinds: ControlPlane, field: str, folder: Path) -> str:
    """What kubectl says of a field; "" while the API server does not list the kind yet."""
    try:
        return kinds.kubectl("explain", field, f"--cache-dir={folder / uuid.uuid4().hex}")
    except KubectlError:
        return ""


def test_j02_install_the_definitions(kinds: ControlPlane, online: Helm, world: World, tmp_path: Path) -> None:
    found = kinds.kubectl("get", "crd", "--output=name")
    assert 6 == found.count("dynamo") == found.count(".nvidia.com")
    world.until(lambda: "services" in explained(kinds, "dgd.spec.services", tmp_path))
    for short in ("dcd", "dgd", "dgdr", "dgdsa", "dm", "dwm"):
        body = kinds.kubectl("get", "--raw", "/apis/nvidia.com/v1alpha1")
        assert f'"{short}"' in body
    online("uninstall", "dynamo-crds", "--namespace=default")
    left = kinds.kubectl("get", "crd", "--output=name")
    online("install", "dynamo-crds", DEFINITIONS, "--namespace=default", ONE_VERSION, "--take-ownership")
    assert 6 == left.count("dynamo")


@contextmanager
def serving(
    kinds: ControlPlane, world: World, log: Path, *more: str, is_called: bool = True
) -> Iterator[tuple[str, OperatorProcess]]:
    """The installed operator with its webhooks, and the address of its probes."""
    hook, probes = free_ports(2)
    if is_called:
        call_beside(kinds, hook, keeps_bundle=True)
    account, flags = pod_of_operator(world)
    kubeconfig = kinds.instance.service_account_kubeconfig(world.namespace, account)
    own = (
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
        f"--webhook-bind-address=127.0.0.1:{hook}",
    )
    with OperatorProcess(kubeconfig, log, (*flags, *own, *more)) as operator:
        yield f"http://127.0.0.1:{probes}", operator


def status(address: str) -> int:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310  ours
            found: int = answer.status
            return found
    except OSError:
        return 0


def test_j03_install_for_the_whole_cluster(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world, WEBHOOKS):
        before = refused(kinds.audit_log)
        kinds.kubectl(
            *("rollout", "status", f"deployment/{DEPLOYMENT}", f"--namespace={world.namespace}"),
            "--timeout=180s",
        )
        with serving(kinds, world, tmp_path / "log") as (address, _):
            world.until(lambda: status(f"{address}/readyz") == 200)
            assert 200 == status(f"{address}/healthz")
            kinds.kubectl("get", "lease", "dynamo.nvidia.com", "--namespace=kube-system")
            text = kinds.kubectl(
                *("get", str(CONFIGURATION), f"{RELEASE}-dynamo-operator-validating", "--output=json")
            )
            entries = json.loads(text)["webhooks"]
            assert 4 == len([each for each in entries if each["clientConfig"].get("caBundle")])
            assert world.get(SECRETS, "webhook-server-cert") is not None
            elsewhere = World(world.server, world.tls, "default")
            elsewhere.create(GRAPH, graph("anywhere"))
            elsewhere.eventually(GRAPH, "anywhere", is_ready)
            with pytest.raises(Refused, match=r"403: admission webhook .*ingress\.host"):
                elsewhere.create(GRAPH, WRONG)
            assert set() == refused(kinds.audit_log) - before
            tried = helm_test(kinds, online, world)
            elsewhere.delete(GRAPH, "anywhere")
            elsewhere.gone(GRAPH, "anywhere")
        assert 0 == tried[0], tried[1]
        assert "ok       Admission: the API server calls the webhooks" in tried[1]
        assert "ok       Permissions: " in tried[1]


def helm_test(kinds: ControlPlane, helm: Helm, world: World) -> tuple[int, str]:
    """What `helm test` runs, with the permissions of the operator."""
    found = helm("get", "hooks", RELEASE, f"--namespace={world.namespace}")
    [pod] = [each for each in yaml.safe_load_all(found) if each]
    [container] = pod["spec"]["containers"]
    assert ["check"] == container["args"][:1]
    account, _ = pod_of_operator(world)
    mine = kinds.instance.service_account_kubeconfig(world.namespace, account)
    return dynamoctl("check", f"--kubeconfig={mine}", *container["args"][1:])


def test_j03_helm_test_fails_if_no_operator_answers(kinds: ControlPlane, online: Helm, world: World) -> None:
    with installed(online, world, WEBHOOKS):
        code, said = helm_test(kinds, online, world)
    assert 1 == code
    assert "fail     Admission: " in said


def test_j04_install_for_one_namespace(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    elsewhere = World(world.server, world.tls, "default")
    with installed(online, world, RESTRICTED), running(kinds, world, tmp_path / "log"):
        lease = world.eventually(LEASES, "dynamo-operator-namespace-scope")
        assert f"namespace-restricted-operator-{version()}" == lease["spec"]["holderIdentity"]
        assert 30 == lease["spec"]["leaseDurationSeconds"]
        for name in ("planner-serviceaccount", "epp-serviceaccount", "dgdr-profiling-job"):
            assert world.get(ACCOUNTS, name) is not None
        elsewhere.create(GRAPH, graph("foreign"))
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        foreign = elsewhere.get(GRAPH, "foreign")
        elsewhere.delete(GRAPH, "foreign")
        code, said = helm_test(kinds, online, world)
        world.delete(GRAPH, "chat")
        world.gone(GRAPH, "chat")
    assert foreign is not None
    assert "status" not in foreign
    assert 0 == code, said
    assert world.get(LEASES, "dynamo-operator-namespace-scope") is None


def test_j06_a_second_cluster_wide_operator_is_reported_before(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    ask = ("check", "--before-install", f"--kubeconfig={kinds.kubeconfig}")
    with installed(online, world), running(kinds, world, tmp_path / "log"):
        world.until(lambda: "leads, by Lease kube-system/dynamo.nvidia.com" in dynamoctl(*ask)[1])
        assert "warning  Operator: " in dynamoctl(*ask)[1]
    assert "ok       Operator: no operator leads" in dynamoctl(*ask)[1]


def test_j07_wire_platform_services(kinds: ControlPlane, online: Helm, world: World, tmp_path: Path) -> None:
    wanted = {
        "NATS_SERVER": ("natsAddr", "nats://nats.shared:4222"),
        "ETCD_ENDPOINTS": ("etcdAddr", "etcd.shared:2379"),
        "MODEL_EXPRESS_URL": ("modelExpressURL", "http://express.shared:8001"),
        "PROMETHEUS_ENDPOINT": ("dynamo.metrics.prometheusEndpoint", "http://prom.shared:9090"),
    }
    values = [f"--set=dynamo-operator.{path}={text}" for path, text in wanted.values()]

    def variables(name: str) -> dict[str, str | None]:
        found = world.eventually(Deployment.KIND, f"{name}-frontend")
        [main] = found["spec"]["template"]["spec"]["containers"]
        return {each["name"]: each.get("value") for each in main["env"]}

    with installed(online, world, BESIDE, *values), running(kinds, world, tmp_path / "log"):
        world.create(GRAPH, graph())
        mine = service("frontend", envs=[{"name": "NATS_SERVER", "value": "nats://mine:1"}])
        world.create(GRAPH, graph("mine", Frontend=mine))
        given = variables("chat")
        assert {name: text for name, (_, text) in wanted.items()}.items() <= given.items()
        assert "nats://mine:1" == variables("mine")["NATS_SERVER"]


def certificate(world: World) -> x509.Certificate:
    secret = world.eventually(SECRETS, "webhook-server-cert", lambda found: "tls.crt" in found["data"])
    return x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))


def test_j08_the_operator_s_certificate_outlives_upgrades_and_comes_back(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    place = f"--namespace={world.namespace}"
    with installed(online, world, WEBHOOKS):
        with serving(kinds, world, tmp_path / "one", is_called=False) as (address, _):
            world.until(lambda: status(f"{address}/readyz") == 200)
            first = certificate(world)
        online("upgrade", RELEASE, PLATFORM, place, WEBHOOKS)
        with serving(kinds, world, tmp_path / "two", is_called=False) as (address, _):
            world.until(lambda: status(f"{address}/readyz") == 200)
            assert first == certificate(world)
        kinds.kubectl("delete", "secret", "webhook-server-cert", place)
        online("upgrade", RELEASE, PLATFORM, place, WEBHOOKS)
        with serving(kinds, world, tmp_path / "three") as (address, _):
            world.until(lambda: status(f"{address}/readyz") == 200)
            assert first != certificate(world)
            with pytest.raises(Refused, match="denied the request"):
                kinds.world("default").create(GRAPH, WRONG)
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    hosts = names.get_values_for_type(x509.DNSName)
    assert f"{RELEASE}-dynamo-operator-webhook-service.{world.namespace}.svc" in hosts


@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
def test_j08_a_certificate_of_one_s_own(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path, is_right: bool
) -> None:
    from datetime import UTC, datetime, timedelta

    now, life = datetime.now(UTC), timedelta(days=1)
    ours, other = (new_authority(name, now=now, life=life) for name in ("ours", "other"))
    pair = ours.issue("127.0.0.1", ["127.0.0.1"], now=now, life=life)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    bundle = base64.b64encode((ours if is_right else other).pem).decode()
    external = "--set=dynamo-operator.webhook.certificateSecret.external=true"
    given = f"--set=dynamo-operator.webhook.caBundle={bundle}"
    with installed(online, world, WEBHOOKS, external, given):
        folder = f"--webhook-cert-dir={tmp_path}"
        with serving(kinds, world, tmp_path / "log", folder) as (_, operator):
            operator.ready()
            words = "denied the request" if is_right else "x509: certificate signed by unknown authority"
            world.until(lambda: words in refusal(world), what=lambda: refusal(world))


def refusal(world: World) -> str:
    try:
        world.create(GRAPH, WRONG)
    except Refused as error:
        return str(error)
    raise AssertionError("it was admitted")


def test_j09_webhooks_off(kinds: ControlPlane, online: Helm, world: World, tmp_path: Path) -> None:
    def failed(body: Object) -> bool:
        return bool(body.get("status", {}).get("state") == "failed")

    with installed(online, world, BESIDE), running(kinds, world, tmp_path / "log"):
        assert RELEASE not in kinds.kubectl("get", str(CONFIGURATION), "--output=name")
        world.create(GRAPH, WRONG)
        found = world.eventually(GRAPH, "wrong", failed)
        [ready] = [each for each in found["status"]["conditions"] if each["type"] == "Ready"]
        assert ("False", "ValidationFailed") == (ready["status"], ready["reason"])
        assert "spec.services[Frontend].ingress.host is required" in ready["message"]

        def warnings() -> list[Object]:
            return [
                each
                for each in world.list(EVENTS)
                if each["reason"] == "ValidationFailed" and each["type"] == "Warning"
            ]

        world.until(warnings)
        assert 1 == len(warnings())
        whole = {"spec": {"services": {"Frontend": {"ingress": {"host": "chat"}}}}}
        world.patch(GRAPH, "wrong", whole)
        world.eventually(GRAPH, "wrong", is_ready)


def test_j10_what_an_upgrade_would_change_is_shown_before(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    ask = ("check", "--before-upgrade", f"--kubeconfig={kinds.kubeconfig}")
    own = f"--namespace={world.namespace}"
    with installed(online, world, BESIDE):
        with running(kinds, world, tmp_path / "log"):
            world.create(GRAPH, graph())
            world.eventually(GRAPH, "chat", is_ready)
        _, same = dynamoctl(*ask, own)
        container = {"name": "main", "image": "registry.example.com/other:1"}
        pods = {"spec": {"template": {"spec": {"containers": [container]}}}}
        patch = f"--patch={json.dumps(pods)}"
        kinds.kubectl("patch", "deployment", "chat-frontend", own, patch)
        _, other = dynamoctl(*ask, own)
    assert "ok       Upgrade of CRDs: nothing changes" in same
    assert "ok       Upgrade of Pods: no pods of " in same
    assert f"fail     Upgrade of Pods: pods would be replaced: {world.namespace}/chat-frontend" in other


def test_j11_removal_in_the_documented_order_leaves_nothing_behind(
    kinds: ControlPlane, online: Helm, world: World, tmp_path: Path
) -> None:
    with installed(online, world, BESIDE), running(kinds, world, tmp_path / "log"):
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        world.delete(GRAPH, "chat")
        world.gone(GRAPH, "chat")
        world.until(lambda: world.get(Deployment.KIND, "chat-frontend") is None)
    left = kinds.kubectl(
        *("get", "all,role,rolebinding,serviceaccount,pdb,secret", "--output=name"),
        f"--namespace={world.namespace}",
    )
    assert [] == [each for each in left.split() if RELEASE in each]
    cluster = kinds.kubectl("get", "clusterrole,clusterrolebinding", "--output=name")
    assert RELEASE not in cluster
