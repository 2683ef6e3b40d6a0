"""A live object contains what was applied, whatever the API server and others have added."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from kube_runtime.apply.drift import has_no_drift, is_same_template, without_emptied
from kube_runtime.types.kinds import Deployment, DeploymentStatus
from kube_runtime.types.meta import (
    Metadata,
    Object,
    OwnerReference,
    Resource,
    Struct,
    content,
    content_of,
    differ_in_size_only,
    fingerprint_of,
)
from simulated.gadget import Gadget

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
MAPS = st.dictionaries(st.text(max_size=3), JSON)


def of_kind(kind: str, **fields: Any) -> Object:
    versions = {"Deployment": "apps/v1", "Ingress": "networking.k8s.io/v1", "Service": "v1"}
    version = versions.get(kind, "rbac.authorization.k8s.io/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {}, **fields}


def pod(**fields: Any) -> Object:
    return of_kind("Deployment", spec={"template": {"spec": fields}})


def container(**fields: Any) -> Object:
    return pod(containers=[{"name": "main", **fields}])


def limited(**limits: Any) -> Object:
    return container(resources={"limits": limits})


def variable(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def service(**fields: Any) -> Object:
    return of_kind("Service", spec=fields)


def role(**rule: Any) -> Object:
    return of_kind("Role", rules=[{"verbs": ["get"], **rule}])


def ingress(**path: Any) -> Object:
    whole = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a"}}, **path}
    return of_kind("Ingress", spec={"rules": [{"host": "h", "http": {"paths": [whole]}}]})


def gadget(**spec: Any) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "spec": spec}


@given(MAPS, MAPS)
def test_fields_that_others_add_to_a_custom_resource_do_not_matter(
    ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    assert has_no_drift(gadget(**ours), gadget(**{**theirs, **ours}))


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(min_value=1), min_size=1), st.data())
def test_a_changed_value_is_found(ours: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(ours)))
    assert not has_no_drift(gadget(**ours), gadget(**{**ours, name: ours[name] + 1}))
    rest = {each: ours[each] for each in ours if each != name}
    assert not has_no_drift(gadget(**ours), gadget(**rest))


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        (service(selector={"a": "b"}), service(selector={"a": "b", "intruder": "x"})),
        (role(), role(resourceNames=["nothing"])),
        (role(), of_kind("Role", rules=[{"verbs": ["get"]}, {"verbs": ["delete"]}])),
        (pod(nodeSelector={"a": "b"}), pod(nodeSelector={"a": "b", "c": "d"})),
        (pod(tolerations=[{"key": "a"}]), pod(tolerations=[{"key": "a", "effect": "NoExecute"}])),
        (container(args=["a"]), container(args=["a", "b"])),
        (ingress(), ingress(backend={"service": {"name": "a"}, "resource": {"name": "b"}})),
        (
            container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "a"}}}]),
            container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"key": "a", "optional": True}}}]),
        ),
        (
            gadget(extraPodSpec={"nodeSelector": {"a": "b"}}),
            gadget(extraPodSpec={"nodeSelector": {"a": "b", "c": "d"}}),
        ),
        (service() | {"metadata": {"labels": {"a": ""}}}, service() | {"metadata": {"labels": {}}}),
        (gadget(a=True), gadget(a=1)),
        (limited(cpu="1"), limited(cpu="2")),
        (container(env=[variable("A", "1000m")]), container(env=[variable("A", "1")])),
        (
            container(env=[variable("A", "1"), variable("B", "$(A)")]),
            container(env=[variable("B", "$(A)"), variable("A", "1")]),
        ),
    ],
)
def test_another_value_and_an_addition_to_what_is_one_value_are_found(wanted: Object, live: Object) -> None:
    assert not has_no_drift(wanted, live)


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        (service(ports=[{"port": 1}]), service(ports=[{"port": 1, "protocol": "TCP"}], type="X")),
        (
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]),
            container(env=[{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "a"}}}]),
        ),
        (
            of_kind("RoleBinding", subjects=[{"kind": "User", "name": "a"}]),
            of_kind(
                "RoleBinding",
                subjects=[{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "a"}],
            ),
        ),
        (container(image="i"), container(image="i", terminationMessagePolicy="File")),
        (
            pod(containers=[{"name": "main", "image": "i"}]),
            pod(containers=[{"name": "main", "image": "i"}, {"name": "mesh", "image": "m"}]),
        ),
        (container(stdin=False, workingDir="", resources={}, args=[], env=None), container()),
        (gadget(a=0, b="", c=False), gadget()),
        (limited(cpu="1000m", **{"x/y": 2}), limited(cpu="1", **{"x/y": "2"})),
        (
            container(ports=[{"name": "http", "containerPort": 8000}]),
            container(ports=[{"name": "http", "containerPort": 8000, "protocol": "TCP"}]),
        ),
    ],
)
def test_what_the_api_server_and_admission_add_or_spell_otherwise_stays(wanted: Object, live: Object) -> None:
    assert has_no_drift(wanted, live)


@pytest.mark.parametrize(
    "fields",
    [
        {"securityContext": {"allowPrivilegeEscalation": False}},
        {"livenessProbe": {"terminationGracePeriodSeconds": 0}},
        {"lifecycle": {"stopSignal": ""}},
    ],
)
def test_a_zero_that_is_taken_away_is_found_where_absent_means_something_else(fields: Object) -> None:
    bare: Object = {name: {} for name in fields}
    assert not has_no_drift(container(**fields), container(**bare))
    assert not has_no_drift(
        gadget(extraPodSpec={"mainContainer": fields}), gadget(extraPodSpec={"mainContainer": bare})
    )


def test_owners_that_others_add_do_not_matter() -> None:
    ours, theirs = OwnerReference("A", "a", "1", controller=True), OwnerReference("B", "b", "2")
    live = content_of(Gadget(metadata=Metadata(owner_references=(theirs, ours))))
    wanted = {"ownerReferences": [{"kind": "A", "name": "a", "uid": "1", "controller": True}]}
    assert has_no_drift({"metadata": wanted}, live)


class Size(Struct):
    nodes: int = 2


class Sized(Resource):
    KIND = Gadget.KIND

    size: Size = Size()


def test_what_is_said_although_it_is_the_default_is_found_again() -> None:
    wanted = {
        "apiVersion": Gadget.KIND.api_version,
        "kind": Gadget.KIND.name,
        "metadata": {"name": "a"},
        "size": {"nodes": 2},
    }
    assert has_no_drift(content(wanted), content_of(Sized()))


def _read(version: str = "1", replicas: int = 0, **parts: Any) -> Deployment:
    owner = OwnerReference(kind="Owner", name="o", uid="o", controller=True)
    metadata = Metadata(
        *("a", "b", "uid", version),
        labels=parts.get("labels", {"a": "b"}),
        annotations=parts.get("annotations", {}),
        owner_references=parts.get("owners", (owner,)),
    )
    spec = Raw(msgspec.json.encode(parts.get("spec", {"replicas": 1})))
    return Deployment(metadata, spec, DeploymentStatus(replicas=replicas))


def test_what_cannot_be_ours_leaves_the_fingerprint_as_it_is() -> None:
    assert fingerprint_of(_read()) == fingerprint_of(_read(version="2", replicas=3))


@pytest.mark.parametrize(
    "changed",
    [
        _read(labels={"a": "c"}),
        _read(labels={}, annotations={"a": "b"}),
        _read(annotations={"a": "b"}),
        _read(owners=()),
        _read(spec={"replicas": 2}),
        _read(spec={}),
    ],
)
def test_whatever_is_compared_changes_the_fingerprint(changed: Deployment) -> None:
    assert content_of(_read()) != content_of(changed)
    assert fingerprint_of(_read()) != fingerprint_of(changed)


def a_deployment(replicas: int = 1, *, image: str = "one", **annotations: str) -> Deployment:
    spec = {"replicas": replicas, "template": {"spec": {"containers": [{"image": image}]}}}
    body = {"metadata": {"name": "d", "annotations": annotations}, "spec": spec}
    return msgspec.json.decode(msgspec.json.encode(body), type=Deployment)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (a_deployment(2), True),
        (a_deployment(0, hash="b"), True),
        (a_deployment(1, hash="b"), False),
        (a_deployment(2, image="two"), False),
        (a_deployment(2, note="new"), False),
    ],
)
def test_a_change_is_of_the_size_only_when_nothing_else_has_changed(
    after: Deployment, expected: bool
) -> None:
    assert expected == differ_in_size_only(a_deployment(1, hash="a"), after, but_for=("hash",))


def test_a_long_list_is_compared_in_time_that_grows_with_its_length() -> None:
    def body(count: int) -> Object:
        envs = [{"name": f"V{number}", "value": "x"} for number in range(count)]
        pod = {"containers": [{"name": "main", "env": envs}]}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}}

    def seconds(count: int) -> float:
        wanted, live = body(count), body(count)
        began = time.process_time()
        assert has_no_drift(wanted, live)
        return time.process_time() - began

    seconds(10)
    assert seconds(16_000) < 20 * seconds(2000) + 0.2


@given(JSON)
def test_what_is_the_same_stays_the_same(value: Any) -> None:
    for live in ({"spec": value}, {}):
        assert {"spec": value} == without_emptied({"spec": value}, live)


def volumes(*found: Object) -> Object:
    return {"extraPodSpec": {"volumes": list(found)}}


@pytest.mark.parametrize(
    ("wanted", "live", "expected"),
    [
        ({"a": {}, "b": 1}, {"a": {"x": 1}}, {"b": 1}),
        ({"a": {}, "b": 1}, {"a": {}}, {"a": {}, "b": 1}),
        (
            volumes({"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}),
            volumes({"name": "b", "emptyDir": {"sizeLimit": "1Gi"}}),
            volumes({"name": "a", "emptyDir": {}}, {"name": "b"}),
        ),
        ({"rules": [{"match": {}}]}, {"rules": [{"match": {"x": 1}}]}, {"rules": [{"match": {}}]}),
    ],
    ids=["a map that was full", "one that was empty", "items by their names", "a list that is one value"],
)
def test_a_map_that_was_full_is_left_out(wanted: Object, live: Object, expected: Object) -> None:
    assert expected == without_emptied(wanted, live)


def template(pod: Object | None = None, **container: Any) -> Object:
    main = {"name": "main", "image": "registry.example.com/a:1", **container}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [main], **(pod or {})}}


PROBE = {"httpGet": {"path": "/live", "port": 8000}}
STORED_PROBE = {
    "httpGet": {"path": "/live", "port": 8000, "scheme": "HTTP"},
    "timeoutSeconds": 1,
    "periodSeconds": 10,
    "successThreshold": 1,
    "failureThreshold": 3,
}


@pytest.mark.parametrize(
    "other",
    [
        template(resources={}, terminationMessagePath="/dev/termination-log"),
        template(imagePullPolicy="IfNotPresent"),
        template({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {}}),
        template({"hostNetwork": False}),
    ],
)
def test_defaults_and_empty_fields_change_nothing(other: Object) -> None:
    bare, probe = template(livenessProbe=PROBE), {"livenessProbe": STORED_PROBE}
    for one, same in ((template(), other), (bare, template(**probe))):
        assert is_same_template(one, same, by_amount=False)
        assert is_same_template(same, one, by_amount=False)


A, B = variable("A", "1"), variable("B", "2")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (template(), template(imagePullPolicy="Always")),
        (template(), template({"dnsPolicy": "Default"})),
        (template(), template({"hostNetwork": True})),
        (template(), template({"initContainers": [{"name": "wait"}]})),
        (template(), template(env=[A])),
        (template(), template(image="registry.example.com/a:2")),
        (template(env=[A, B]), template(env=[B, A])),
        (template(livenessProbe=PROBE), template(livenessProbe=STORED_PROBE | {"timeoutSeconds": 2})),
    ],
)
def test_everything_else_does(one: Object, other: Object) -> None:
    assert not is_same_template(one, other, by_amount=True)
    assert not is_same_template(other, one, by_amount=True)


def test_the_spelling_of_an_amount_counts_only_where_a_controller_sees_it() -> None:
    one, other = (template(resources={"limits": {"cpu": each}}) for each in ("1", "1000m"))
    assert is_same_template(one, other, by_amount=True)
    assert not is_same_template(one, other, by_amount=False)


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("r:5000/a", "Always"),
        ("r:5000/a:1", "IfNotPresent"),
        ("a@sha256:0", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    one, other = template(image=image), template(image=image, imagePullPolicy=policy)
    assert is_same_template(one, other, by_amount=False)
