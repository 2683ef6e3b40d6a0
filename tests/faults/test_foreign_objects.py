"""The operator never changes an object that it did not create, and the graph names the conflict.

Each case is a graph of its own with one conflicting name, all in one namespace: the operator retries
conflicts only every ten seconds, and the cases wait for that together.
"""

import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.epp.test_picker import picker
from cluster.graph.graphs import IMAGE, graph, service, worker
from cluster.installed import installed
from cluster.operator_process import Nursery
from cluster.world import ADAPTER, COMPONENT, DEPLOYMENT, GRAPH, SERVICE, World
from dynamo_operator import names
from dynamo_operator.shared.cluster import InferencePool
from faults.proxy import Proxy, kubeconfig
from faults.stage import namespace
from kube_runtime.types.kinds import ConfigMap, Ingress, Role, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Kind, Object

RBAC = "rbac.authorization.k8s.io"
ROLE_REFERENCE = {"apiGroup": RBAC, "kind": "Role", "name": "theirs"}
POD = {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [{"name": "main", "image": IMAGE}]}}
THEIR_SERVICE = {"name": "theirs", "serviceName": "Frontend"}
BACKEND = {"service": {"name": "theirs", "port": {"number": 80}}}

pytestmark = pytest.mark.cluster


@dataclass(frozen=True, eq=False)
class Case:
    """An object of that kind, with that content, under the name that the graph `graph` needs."""

    graph: str
    kind: Kind
    name: str
    content: Object
    is_owned: bool

    @property
    def words(self) -> str:
        return f"{self.kind.name} {self.name}"


def cases(prefix: str, *, is_owned: bool) -> list[Case]:
    """One for each kind that a graph and its components make."""
    theirs = {"selector": {"matchLabels": {"app": "theirs"}}, "template": POD}
    contents: list[tuple[Kind, Callable[[str], str], Object]] = [
        (COMPONENT, frontend, {"spec": {**service("frontend"), "backendFramework": "vllm"}}),
        (DEPLOYMENT, frontend, {"spec": theirs}),
        (SERVICE, frontend, {"spec": {"ports": [{"port": 1}], "selector": {"app": "theirs"}}}),
        (Ingress.KIND, frontend, {"spec": {"defaultBackend": BACKEND}}),
        (ADAPTER, frontend, {"spec": {"replicas": 3, "dgdRef": THEIR_SERVICE}}),
        (ServiceAccount.KIND, names.discovery_account, {}),
        (Role.KIND, partial(names.discovery_account, suffix="-role"), {"rules": []}),
        (RoleBinding.KIND, partial(names.discovery_account, suffix="-binding"), {"roleRef": ROLE_REFERENCE}),
        (ConfigMap.KIND, names.epp_config_map, {"data": {"theirs": "yes"}}),
    ]
    return [
        Case(each := f"{prefix}-{number}", kind, name(each), content, is_owned)
        for number, (kind, name, content) in enumerate(contents)
    ]


def frontend(graph: str) -> str:
    return names.component_name(graph, "Frontend")


def a_graph(case: Case) -> Object:
    """A graph that needs an object of every kind."""
    reached = service(
        "frontend",
        ingress={"enabled": True, "host": case.graph, "ingressControllerClassName": "nginx"},
        scalingAdapter={"enabled": True},
    )
    pickers = {"Epp": picker()} if case.kind is ConfigMap.KIND else {}
    decode = worker("decode", resources=None)
    return graph(case.graph, Frontend=reached, Decode=decode, **pickers)


def told(live: Object) -> Object:
    """What an object says, without what its own controller and the API server keep in it."""
    metadata = live["metadata"]
    kept = {each: metadata.get(each) for each in ("uid", "labels", "ownerReferences", "finalizers")}
    rest = {key: value for key, value in live.items() if key not in ("metadata", "status")}
    return {**rest, "metadata": kept}


def is_told(world: World, case: Case) -> bool:
    text = says(world, case)  # as long as a service starts, the graph has several reasons
    return case.words in text and text.startswith("False name_conflict")


def says(world: World, case: Case) -> str:
    ready = condition(world.eventually(GRAPH, case.graph), "Ready")
    return f"{ready.get('status')} {ready.get('reason')}: {ready.get('message')}"


@pytest.fixture(scope="module")
def proxy(kinds: ControlPlane, tls: ssl.SSLContext) -> Iterator[Proxy]:
    """A way to the API server that knows InferencePools, which graphs with a ConfigMap need."""
    with (
        installed(kinds, ["inferencepool"], [InferencePool.KIND]),
        Proxy(kinds.server, tls).running() as running,
    ):
        yield running


def controller(owner: Object) -> Object:
    """The reference by which that ConfigMap controls an object."""
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": True}


def test_objects_of_others_are_not_touched(proxy: Proxy, tmp_path: Path) -> None:
    """Every name is taken; then the graphs are made, and name the conflict; then the names become free."""
    nursery = Nursery(kubeconfig(proxy, tmp_path / "config"), tmp_path)
    with (
        namespace(proxy) as world,
        nursery.operator(world.namespace, "--epp-cluster-role-name=view") as operator,
    ):
        # The ServiceAccount of pickers is the installation's when the operator is restricted to a namespace.
        world.create(ServiceAccount.KIND, {"metadata": {"name": "epp-serviceaccount"}})
        owner = world.create(ConfigMap.KIND, {"metadata": {"name": "owner"}})
        every = [*cases("free", is_owned=False), *cases("owned", is_owned=True)]
        before = {}
        for case in every:
            metadata: Object = {"name": case.name}
            if case.is_owned:
                metadata["ownerReferences"] = [controller(owner)]
            body = {**case.content, "metadata": metadata}
            before[case.words] = told(world.create(case.kind, body))
            world.create(GRAPH, a_graph(case))
        for case in every:
            world.until(partial(is_told, world, case))
        assert before == {case.words: told(world.eventually(case.kind, case.name)) for case in every}
        for case in every:
            world.delete(case.kind, case.name)
        for case in every:
            world.eventually(GRAPH, case.graph, is_ready)
        assert operator.ended is None


def test_what_an_earlier_graph_of_the_same_name_left_is_waited_for(proxy: Proxy, tmp_path: Path) -> None:
    """The garbage collector takes it away: its owner has the right name, and another uid."""
    config = kubeconfig(proxy, tmp_path / "config")
    [case, *_] = [each for each in cases("late", is_owned=False) if each.kind is SERVICE]
    earlier = {
        "apiVersion": GRAPH.api_version,
        "kind": COMPONENT.name,
        "name": f"{case.graph}-frontend",
        "uid": "00000000-0000-4000-8000-000000000000",
        "controller": True,
    }
    with namespace(proxy) as world:
        metadata = {"name": case.name, "ownerReferences": [earlier]}
        before = world.create(case.kind, {**case.content, "metadata": metadata})
        world.create(GRAPH, a_graph(case))
        with Nursery(config, tmp_path).operator(world.namespace):
            world.eventually(GRAPH, case.graph, is_ready)
        after = world.eventually(case.kind, case.name)
        assert before["metadata"]["uid"] != after["metadata"]["uid"]
        assert "DELETE" not in {each.method for each in proxy.writes_in(world.namespace)}
