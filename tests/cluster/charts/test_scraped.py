"""A real Prometheus reads the operator as the ServiceMonitor says, and answers every panel and alert."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from cluster.charts.conftest import PLATFORM
from cluster.charts.prometheus import Prometheus, promtool, running
from cluster.charts.releases import RELEASE, call_beside, installed, pod_of_operator
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OperatorProcess
from cluster.world import GRAPH, SECRETS, Refused, World
from devcluster.layout import free_ports
from devcluster.programs import Helm
from kube_runtime.types.meta import Object

FILES = PLATFORM / "files"
ALERTS = FILES / "alerts.yaml"
TESTED_ALERTS = Path(__file__).with_name("alerts_test.yaml")
FULLNAME = f"{RELEASE}-dynamo-operator"
READER = "prometheus"
USUAL = "prometheus-k8s"
"""A ServiceAccount whose only permissions are those of the Prometheus operator's manifests."""
# Nothing fails in these tests, so no failures are counted.
MAY_BE_EMPTY = {"Reconciliation Errors"}

pytestmark = [pytest.mark.cluster, pytest.mark.long]  # Prometheus is compiled first


def panels() -> dict[str, list[str]]:
    """The queries of each panel, with everything chosen that a user can choose."""
    board = json.loads((FILES / "operator-dashboard.json").read_text("utf-8"))
    return {
        panel["title"]: [
            target["expr"].replace("$namespace", ".*").replace("$resource_type", ".*")
            for target in panel["targets"]
        ]
        for panel in board["panels"]
        if panel["type"] != "row"
    }


def alerts() -> dict[str, str]:
    groups = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


@dataclass(frozen=True, slots=True)
class Scene:
    """Two replicas that are scraped, and who does it."""

    prometheus: Prometheus
    namespace: str
    ports: tuple[int, ...]
    token: str
    authority: str

    def asked(self, port: int, token: str) -> int:
        """The status of a scrape."""
        context = ssl.create_default_context(cadata=self.authority)
        context.check_hostname = False  # Prometheus checks it
        request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, context=context, timeout=60) as answer:  # noqa: S310
                status: int = answer.status
                return status
        except urllib.error.HTTPError as error:
            with error:
                return error.code


def scraping(monitor: Object, world: World, scene: Path, ports: tuple[int, ...]) -> Path:
    """The configuration that a ServiceMonitor means, with our addresses for those of its Service."""
    [endpoint] = monitor["spec"]["endpoints"]
    place = {"namespace": world.namespace, "job": FULLNAME}
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {**place, "pod": f"operator-{index}"}}
        for index, port in enumerate(ports)
    ]
    authority = endpoint["tlsConfig"]["ca"]["secret"]
    secret = world.eventually(SECRETS, authority["name"])
    (scene / "ca.crt").write_bytes(base64.b64decode(secret["data"][authority["key"]]))
    job = {
        "job_name": "operator",
        "scheme": endpoint["scheme"],
        "metrics_path": endpoint["path"],
        "scrape_interval": "1s",
        "honor_labels": endpoint["honorLabels"],
        "tls_config": {"ca_file": str(scene / "ca.crt"), "server_name": endpoint["tlsConfig"]["serverName"]},
        "authorization": {"credentials_file": str(scene / "token")},
        "static_configs": targets,
    }
    assert "bearerTokenFile" in endpoint
    file = scene / "prometheus.yaml"
    whole = {"global": {"evaluation_interval": "1s"}, "rule_files": [str(ALERTS)], "scrape_configs": [job]}
    file.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def scene(
    kinds: ControlPlane, online: Helm, offline: Helm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """The chart installed with everything for monitoring, two replicas, some graphs, and Prometheus."""
    folder = tmp_path_factory.mktemp("scraped")
    namespace = "scraped"
    kinds.kubectl("create", "namespace", namespace)
    for account in (READER, USUAL):
        kinds.kubectl("create", "serviceaccount", account, f"--namespace={namespace}")
    kinds.kubectl("create", "clusterrole", USUAL, "--non-resource-url=/metrics", "--verb=get")
    kinds.kubectl(
        *("create", "clusterrolebinding", USUAL, f"--clusterrole={USUAL}"),
        f"--serviceaccount={namespace}:{USUAL}",
    )
    world = kinds.world(namespace)
    readers = "dynamo-operator.metricsService.readers[0]"
    chosen = (f"--set={readers}.name={READER}", f"--set={readers}.namespace={namespace}")
    ports = free_ports(4)
    with ExitStack() as stack:
        stack.enter_context(installed(online, world, *chosen))
        call_beside(kinds, ports[2])
        for index in range(2):
            stack.enter_context(replica(kinds, world, folder / f"log{index}", ports[index], ports[2 + index]))
        live(kinds, world)
        arguments = ("template", RELEASE, PLATFORM, f"--namespace={namespace}")
        text = offline(*arguments, *chosen, "--api-versions=monitoring.coreos.com/v1")
        [monitor] = [each for each in yaml.safe_load_all(text) if each and each["kind"] == "ServiceMonitor"]
        token = kinds.kubectl("create", "token", READER, f"--namespace={namespace}").strip()
        (folder / "token").write_text(token, encoding="utf-8")
        configuration = scraping(monitor, world, folder, ports[:2])
        prometheus = stack.enter_context(running(configuration, folder / "prometheus"))
        prometheus.until(lambda which: len(up(which)) == 2, within_seconds=180)
        live(kinds, world, "again")
        prometheus.until(lambda which: which.query("count_over_time(up[1m]) > 3"), within_seconds=180)
        authority = (folder / "ca.crt").read_text("utf-8")
        yield Scene(prometheus, namespace, ports[:2], token, authority)


def replica(kinds: ControlPlane, world: World, log: Path, metrics: int, webhooks: int) -> OperatorProcess:
    """A replica as the chart has it, with ports of this machine."""
    account, flags = pod_of_operator(world)
    kubeconfig = kinds.instance.service_account_kubeconfig(world.namespace, account)
    own = (
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--webhook-bind-address=127.0.0.1:{webhooks}",
        "--health-probe-bind-address=0",
    )
    return OperatorProcess(kubeconfig, log, (*flags, *own))


def live(kinds: ControlPlane, world: World, name: str = "chat") -> None:
    """A graph becomes ready, and a wrong one is refused, once the API server trusts the webhooks."""

    def refuses() -> bool:
        wrong = graph("wrong", Frontend=service("frontend", ingress={"enabled": True}))
        try:
            world.create(GRAPH, wrong)
        except Refused as refusal:
            return refusal.code == 403
        raise AssertionError("a wrong graph was admitted")

    world.until(refuses)
    world.create(GRAPH, graph(name))
    world.eventually(GRAPH, name, is_ready)


def up(prometheus: Prometheus) -> list[object]:
    return list(prometheus.query("up == 1"))


def test_both_replicas_are_read_over_tls_with_a_token(scene: Scene) -> None:
    found = scene.prometheus.get("targets")["activeTargets"]
    assert [("up", "")] * 2 == [(each["health"], each["lastError"]) for each in found]
    assert {"https"} == {each["scrapeUrl"].partition(":")[0] for each in found}


def test_the_account_of_a_usual_prometheus_reads_without_a_value_of_ours(
    kinds: ControlPlane, scene: Scene
) -> None:
    usual = kinds.kubectl("create", "token", USUAL, f"--namespace={scene.namespace}").strip()
    assert [200, 200] == [scene.asked(port, usual) for port in scene.ports]


def test_metrics_need_a_permitted_token(kinds: ControlPlane, scene: Scene) -> None:
    stranger = kinds.kubectl("create", "token", "default", f"--namespace={scene.namespace}").strip()
    [port, _] = scene.ports
    assert [200, 403, 401] == [scene.asked(port, each) for each in (scene.token, stranger, "")]


@pytest.mark.parametrize("title", panels())
def test_a_panel_s_queries_are_answered(scene: Scene, title: str) -> None:
    for query in panels()[title]:
        found = scene.prometheus.query(query)
        assert found or title in MAY_BE_EMPTY, query


def test_prometheus_evaluates_all_alerts_and_none_is_on(scene: Scene) -> None:
    def judged(prometheus: Prometheus) -> list[Object]:
        groups = prometheus.get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return [] if any(rule["health"] == "unknown" for rule in rules) else rules

    found = scene.prometheus.until(judged, within_seconds=180)
    assert {(name, "ok") for name in alerts()} == {(each["name"], each["health"]) for each in found}
    assert set() == {each["name"] for each in found if each["state"] == "firing"}


def test_objects_are_counted_once_although_two_replicas_export_them(scene: Scene) -> None:
    [query] = panels()["Resource Count by State"]
    found = scene.prometheus.query(query)
    counts = {
        each["metric"]["resource_type"]: each["value"][1]
        for each in found
        if each["metric"]["status"] == "successful"
    }
    assert {"DynamoGraphDeployment": "2"} == counts
    [leaders] = scene.prometheus.query(panels()["Leaders"][0])
    assert "1" == leaders["value"][1]


def test_a_metric_s_namespace_is_that_of_the_object(scene: Scene) -> None:
    found = scene.prometheus.query("dynamo_operator_graph_ready")
    assert {scene.namespace} == {each["metric"]["namespace"] for each in found}
    assert [] == scene.prometheus.query('{exported_namespace=~".+"}')


def test_alerts_are_on_when_they_should_be() -> None:
    assert "SUCCESS" in promtool("check", "rules", ALERTS)
    assert "SUCCESS" in promtool("test", "rules", TESTED_ALERTS)
