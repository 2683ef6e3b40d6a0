"""What a tenant tries with the way into a graph from outside: the traffic of others, the proxy itself."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.admission.decide import RULES, ReviewContext, decide
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.exposure import component_exposure, exposure_problems
from dynamo_operator.component.render import component_parts
from dynamo_operator.graph.validate import inoperative
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.apply.result import Obstacle

OPERATOR = RenderSettings(virtual_service_gateway="istio-system/public")
NGINX = "nginx.ingress.kubernetes.io/"


def component(ingress: dict[str, Any], **spec: Any) -> DynamoComponentDeployment:
    body = {
        "metadata": {"name": "chat", "namespace": "team-a", "generation": 1, "uid": "1"},
        "spec": {
            "componentType": "frontend",
            "ingress": {"enabled": True, "host": "chat"} | ingress,
            "extraPodSpec": {"mainContainer": {"image": "registry.example.com/chat:1"}},
            **spec,
        },
    }
    return msgspec.convert(body, DynamoComponentDeployment)


def places(found: DynamoComponentDeployment, settings: RenderSettings = OPERATOR) -> list[str]:
    return [each.path for each in exposure_problems(found.spec, "spec", settings)]


def in_mesh(gateway: str | None, **ingress: Any) -> DynamoComponentDeployment:
    return component({"useVirtualService": True, "virtualServiceGateway": gateway} | ingress)


@pytest.mark.parametrize("gateway", ["mesh", "team-b/gateway", "*"])
def test_no_gateway_but_the_operators_own(gateway: str) -> None:
    assert ["spec.ingress.virtualServiceGateway"] == places(in_mesh(gateway))


def test_the_operators_own_gateway_and_listed_ones_are_allowed() -> None:
    listed = msgspec.structs.replace(OPERATOR, allowed_gateways="a/b, *")
    assert [] == places(in_mesh("istio-system/public"))
    assert [] == places(in_mesh("team-b/gateway"), listed)
    assert ["spec.ingress.virtualServiceGateway"] == places(in_mesh("mesh"), listed)
    assert [] == places(in_mesh("mesh"), RenderSettings(allowed_gateways="mesh"))


@pytest.mark.parametrize("gateway", ["", None])
def test_no_route_without_a_gateway_which_would_be_one_of_the_whole_mesh(gateway: str | None) -> None:
    found = in_mesh(gateway)
    settings = RenderSettings(virtual_service_gateway="istio-system/public", allowed_gateways="*")
    objects, _ = component_parts(found, Facts(istio_served=True), settings)
    assert "VirtualService" not in {each["kind"] for each in objects}
    (said,) = inoperative(found.spec, "spec")
    assert "spec.ingress.virtualServiceGateway" == said.path


def test_a_route_inside_the_mesh_counts_in_its_own_namespace_only() -> None:
    settings = RenderSettings(allowed_gateways="mesh")
    found, _ = component_parts(in_mesh("mesh"), Facts(istio_served=True), settings)
    (route,) = (each for each in found if each["kind"] == "VirtualService")
    assert ["."] == route["spec"]["exportTo"]


@pytest.mark.parametrize(
    ("host", "suffix"),
    [
        ("payments", "team-b.svc.cluster.local"),
        ("payments", "team-b.svc"),
        ("payments.team-b.svc.cluster", None),
        ("payments", "team-b.svc.corp.example"),
        ("*", None),
        ("*", "svc.cluster.local"),
        ("*.team-b", "svc"),
        ("10-0-0-1.team-b.pod", "cluster.local"),
    ],
)
def test_no_host_of_the_clusters_own_domains(host: str, suffix: str | None) -> None:
    domain = "corp.example" if "corp" in (suffix or "") else OPERATOR.cluster_domain
    settings = msgspec.structs.replace(OPERATOR, cluster_domain=domain)
    found = component({"host": host, "hostSuffix": suffix, "ingressControllerClassName": "nginx"})
    assert ["spec.ingress.host"] == places(found, settings)


@pytest.mark.parametrize(
    "key",
    [
        f"{NGINX}configuration-snippet",
        f"{NGINX}server-snippet",
        f"{NGINX}auth-snippet",
        f"{NGINX}stream-snippet",
        f"{NGINX}modsecurity-snippet",
        "another.prefix.example/server-snippet",
        "nginx.org/server-snippets",
        "nginx.org/location-snippets",
        "haproxy.org/backend-config-snippet",
        "haproxy-ingress.github.io/config-backend",
        "ingress.kubernetes.io/config-frontend",
        "zalando.org/skipper-routes",
        "getambassador.io/config",
    ],
)
@pytest.mark.parametrize("place", ["ingress.annotations", "annotations", "extraPodMetadata.annotations"])
def test_annotations_that_are_configuration_of_the_proxy_are_refused(key: str, place: str) -> None:
    written = {"annotations": {key: "proxy_pass http://secrets;"}}
    found = {
        "ingress.annotations": component(written),
        "annotations": component({}, **written),
        "extraPodMetadata.annotations": component({}, extraPodMetadata=written),
    }[place]
    assert [f"spec.{place}[{key}]"] == places(found)
    assert [] == places(found, RenderSettings(ingress_allowed_annotations=f"*,{key}"))
    if place == "ingress.annotations":
        assert [f"spec.{place}[{key}]"] == places(found, RenderSettings(ingress_allowed_annotations="*"))


def test_ordinary_annotations_are_allowed_unless_there_is_a_list() -> None:
    found = component({"annotations": {f"{NGINX}auth-url": "https://login", f"{NGINX}proxy-body-size": "8m"}})
    assert [] == places(found)
    listed = RenderSettings(ingress_allowed_annotations=f"{NGINX}proxy-*,cert-manager.io/issuer")
    assert [f"spec.ingress.annotations[{NGINX}auth-url]"] == places(found, listed)


def test_a_component_does_not_carry_other_annotations_past_the_list() -> None:
    settings = RenderSettings(ingress_allowed_annotations="cert-manager.io/*")
    texts = {f"{NGINX}auth-url": "https://login", "cert-manager.io/issuer": "a"}
    found = component({"ingressControllerClassName": "nginx"}, annotations=texts)
    objects, _ = component_parts(found, Facts(), settings)
    (ingress,) = (each for each in objects if each["kind"] == "Ingress")
    assert {"cert-manager.io/issuer": "a"} == ingress["metadata"]["annotations"]


def test_classes_and_hosts_are_those_of_the_lists() -> None:
    settings = RenderSettings(
        ingress_class_name="nginx",
        ingress_allowed_classes="internal",
        ingress_host_suffix="apps.example.com",
        ingress_allowed_host_suffixes="lab.example.com",
    )

    def at(host: str, suffix: str, class_name: str, **annotations: str) -> list[str]:
        ingress = {"host": host, "hostSuffix": suffix, "ingressControllerClassName": class_name}
        return places(component(ingress | {"annotations": annotations}), settings)

    assert [] == at("chat", "apps.example.com", "nginx")
    assert [] == at("chat", "lab.example.com", "internal")
    assert ["spec.ingress.ingressControllerClassName"] == at("chat", "lab.example.com", "public")
    assert ["spec.ingress.host"] == at("chat", "bank.example.com", "nginx")
    assert ["spec.ingress.host"] == at("chat", "evil-apps.example.com", "nginx")
    assert ["spec.ingress.host"] == at("*", "apps.example.com", "nginx")
    for key, value in (
        ("kubernetes.io/ingress.class", "public"),
        (f"{NGINX}server-alias", "chat.apps.example.com, bank.example.com"),
        ("external-dns.alpha.kubernetes.io/hostname", "bank.example.com"),
    ):
        found = at("chat", "apps.example.com", "nginx", **{key: value})
        assert [f"spec.ingress.annotations[{key}]"] == found


def test_admission_refuses_what_is_new_and_only_warns_of_what_was_there() -> None:
    rules = next(each for each in RULES if each.type_ is DynamoComponentDeployment)
    bad = _document(in_mesh("mesh"))
    scaled = component({"useVirtualService": True, "virtualServiceGateway": "mesh"}, replicas=3)
    new = decide(rules, bad, None, ReviewContext(OPERATOR))
    assert ["spec.ingress.virtualServiceGateway"] == [each.path for each in new.problems]
    assert decide(rules, _document(scaled), bad, ReviewContext(OPERATOR)).allowed


def test_what_exists_is_neither_written_nor_deleted() -> None:
    """So an operator upgrade takes no traffic away, and a graph that no webhook saw gets nothing."""
    found = in_mesh("mesh", ingressControllerClassName="nginx")
    wanted, _ = component_parts(found, Facts(istio_served=True), OPERATOR)
    exposure = component_exposure(found, wanted, OPERATOR)
    kinds = {each["kind"] for each in wanted}
    assert {"Ingress", "VirtualService"} == kinds - {each["kind"] for each in exposure.desired}
    assert {"Ingress", "VirtualService"} == {kind for kind, _ in exposure.spared}
    assert {Obstacle.NOT_ALLOWED} == {each.obstacle for each in exposure.blocked}
    assert "spec.ingress.virtualServiceGateway" in exposure.blocked[0].message


def test_a_gateway_does_not_matter_where_there_is_no_istio() -> None:
    found = in_mesh("team-b/gateway", ingressControllerClassName="nginx")
    settings = RenderSettings()
    wanted, _ = component_parts(found, Facts(), settings)
    assert wanted == component_exposure(found, wanted, settings).desired


def _document(found: DynamoComponentDeployment) -> msgspec.Raw:
    kind = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoComponentDeployment"}
    return msgspec.Raw(msgspec.json.encode(msgspec.to_builtins(found) | kind))
