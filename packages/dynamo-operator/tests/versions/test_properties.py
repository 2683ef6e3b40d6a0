"""What holds for every object: it survives the other version, and no JSON makes conversion fail otherwise."""

import copy
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_operator.crds import LATER_RESOURCES, RESOURCES, defaulted
from dynamo_operator.shared.seen import seen
from dynamo_operator.versions.conversion import ConversionError, convert, convert_spec
from kube_runtime.schema import resource_schema
from kube_runtime.types.meta import Object, Resource
from specs.documents import odd_document
from specs.stored import stored_object
from specs.versions import API_VERSIONS, KINDS, an_object, shape_of

OLD, NEW = API_VERSIONS["v1alpha1"], API_VERSIONS["v1beta1"]
OTHER = {OLD: NEW, NEW: OLD}
SHORT_NAMES = {"GRAPH": "dgd", "COMPONENT_DEPLOYMENT": "dcd", "REQUEST": "dgdr"}
DICE = st.integers(min_value=0).map(Random)
PARTS_OF_PAYLOADS = ("spec", "status", "typed")
PAYLOADS = {f"nvidia.com/{short}-{part}" for short in SHORT_NAMES.values() for part in PARTS_OF_PAYLOADS}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_VERSION = pytest.mark.parametrize("version", API_VERSIONS)
OLD_KINDS = [resource for resource in RESOURCES if resource.KIND.name in KINDS.values()]
STORED_OBJECTS = int(os.environ.get("FUZZ_MANIFESTS", "400"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def read(body: Object, kind: str) -> Object:
    """An object as its types hold it, without payloads."""
    version = body["apiVersion"].rpartition("/")[2]
    content: Object = shape_of(version, kind).read(body)
    annotations = content["metadata"].pop("annotations", {})
    others = {name: value for name, value in annotations.items() if name not in PAYLOADS}
    return {**content, "annotations": others}


def there_and_back(body: Object) -> Object:
    return convert(convert(body, OTHER[body["apiVersion"]]), body["apiVersion"])


def components_of(content: Object) -> list[Object]:
    """The services or components of a graph or component deployment."""
    spec = content.get("spec", {})
    if isinstance(spec.get("services"), dict):
        return [service for service in spec["services"].values() if service is not None]
    components: list[Object] = spec.get("components", [spec])
    return components


def containers_of(request: Object) -> list[Object]:
    """The containers in the Job of a request of v1beta1."""
    job = request["spec"].get("overrides", {}).get("profilingJob", {})
    containers: list[Object] = job.get("template", {}).get("spec", {}).get("containers", [])
    return containers


@EVERY_KIND
@given(DICE)
def test_an_object_of_v1beta1_survives_v1alpha1(kind: str, dice: Random) -> None:
    body = an_object("v1beta1", kind, dice)
    expected = read(body, kind)
    if kind == "REQUEST":
        expected["spec"] = {"autoApply": True, **expected.get("spec", {})}
        expected["status"] = {"phase": "Pending", **with_some_parts(expected.get("status", {}))}
        for container in containers_of(expected)[:1]:
            container.setdefault("name", "profiler")
    for component in components_of(expected):
        if "checkpoint" in component.get("experimental", {}):
            component["experimental"]["checkpoint"].setdefault("enabled", False)
    assert expected == read(there_and_back(body), kind)


@EVERY_VERSION
@EVERY_KIND
@given(DICE)
def test_a_spec_alone_is_that_of_the_converted_object(kind: str, version: str, dice: Random) -> None:
    body = an_object(version, kind, dice)
    other = OTHER[body["apiVersion"]]
    assert convert(body, other).get("spec", {}) == convert_spec(body, other)


@EVERY_KIND
@given(DICE)
def test_an_object_of_v1alpha1_survives_v1beta1(kind: str, dice: Random) -> None:
    body = an_object("v1alpha1", kind, dice)
    expected = read(body, kind)
    if kind == "REQUEST":
        spec = expected.setdefault("spec", {})
        if image := spec.get("deploymentOverrides", {}).get("workersImage"):
            spec["profilingConfig"] = {"profilerImage": image, **spec.get("profilingConfig", {})}
        expected["status"] = {"state": "Pending", **expected.get("status", {})}
    for service in components_of(expected):
        if "checkpoint" in service:
            service["checkpoint"].setdefault("enabled", False)
    assert {"spec": {}, **expected} == {"spec": {}, **read(there_and_back(body), kind)}


PARTS = {
    *("spec", "status", "features", "modelCache", "overrides", "planner", "profilingJob", "profilingResults"),
    *("sla", "workload", "deploymentOverrides", "profilerImage", "profilingConfig", "resources"),
}


def with_some_parts(fields: Object) -> Object:
    """A request without the empty parts for which the other version has no form."""
    inner = {
        name: with_some_parts(value) if name in PARTS and isinstance(value, dict) else value
        for name, value in fields.items()
    }
    return {name: value for name, value in inner.items() if value or name not in PARTS}


@pytest.mark.parametrize("resource", [*OLD_KINDS, *LATER_RESOURCES])
@settings(max_examples=STORED_OBJECTS // 8)
@given(DICE)
def test_a_stored_object_comes_back_without_a_difference(resource: type[Resource], dice: Random) -> None:
    """Of any fields of the schema, with the defaults that the API server fills in on each way.

    In the status, which the operator writes, `read` alone would miss a lost field that conversion does not
    know, and `without_zeros` a lost zero.
    """
    body = stored_object(resource, dice)
    (kind,) = (short for short, kind in KINDS.items() if kind == resource.KIND.name)
    back = defaulted(convert(defaulted(convert(body, OTHER[body["apiVersion"]])), body["apiVersion"]))
    expected = {**body, "spec": with_written_fields(body, kind), "status": with_state(body, kind)}
    assert expected["spec"] == back["spec"]
    assert without_zeros(expected) == without_zeros(without_payloads(back))
    assert with_some_parts(read(expected, kind)) == with_some_parts(read(back, kind))


REFUSED = ("model", "mountPath", "port")
"""Fields that the schema of v1alpha1 lets be empty or absent, and with which nothing can run."""


@pytest.mark.parametrize("resource", OLD_KINDS)
@settings(max_examples=STORED_OBJECTS // 8)
@given(DICE)
def test_an_object_of_v1alpha1_has_what_the_schema_of_v1beta1_requires(
    resource: type[Resource], dice: Random
) -> None:
    """It is stored without a check, and the API server would refuse each write of it afterwards."""
    (later,) = (it for it in LATER_RESOURCES if it.KIND.name == resource.KIND.name)
    schema = resource_schema(later)["properties"]["spec"]
    paths = lacking(schema, defaulted(convert(stored_object(resource, dice), NEW)).get("spec", {}))
    assert [] == [path for path in paths if path.rpartition(".")[2] not in REFUSED]


def lacking(schema: Object, value: Any, path: str = "") -> Iterator[str]:
    """The paths of the fields that a schema requires and a value lacks."""
    if isinstance(value, list):
        for index, child in enumerate(value):
            yield from lacking(schema.get("items", {}), child, f"{path}[{index}]")
    elif isinstance(value, dict):
        yield from (f"{path}.{name}" for name in schema.get("required", ()) if name not in value)
        others = schema.get("additionalProperties", {})
        for name, child in value.items():
            yield from lacking(schema.get("properties", {}).get(name, others), child, f"{path}.{name}")


def with_written_fields(body: Object, kind: str) -> Object:
    """The spec with what conversion writes where there was nothing."""
    spec: Object = body["spec"]
    image = spec.get("deploymentOverrides", {}).get("workersImage")
    profiling = spec.get("profilingConfig", {})
    if kind == "REQUEST" and image and not profiling.get("profilerImage"):
        return {**spec, "profilingConfig": {**profiling, "profilerImage": image}}
    return spec


def with_state(body: Object, kind: str) -> Object:
    """The status with the state that an object without one has in the other version."""
    status: Object = body.get("status", {})
    if kind == "REQUEST":
        field = "state" if body["apiVersion"] == OLD else "phase"
        return {**status, field: status.get(field) or "Pending"}
    is_any = kind == "GRAPH" and "status" in read(body, kind)
    return {"state": "initializing", **status} if is_any else status


def without_payloads(body: Object) -> Object:
    """The object without the annotations that preserve fields."""
    annotations = body["metadata"].get("annotations", {})
    others = {name: text for name, text in annotations.items() if name not in PAYLOADS}
    return {**body, "metadata": {**body["metadata"], "annotations": others}}


def without_zeros(value: Any) -> Any:
    """A value without fields that are empty, 0 or false, and without those that are then empty."""
    if isinstance(value, list):
        return [without_zeros(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: kept for name, child in value.items() if (kept := without_zeros(child))}


def test_a_second_main_container_is_lost() -> None:
    extra = {"mainContainer": {"image": "i"}, "containers": [{"name": "main", "image": "j"}]}
    body = {"apiVersion": OLD, "kind": KINDS["COMPONENT_DEPLOYMENT"], "spec": {"extraPodSpec": extra}}
    assert {"mainContainer": {"image": "i"}} == there_and_back(body)["spec"]["extraPodSpec"]


@EVERY_VERSION
@EVERY_KIND
@given(DICE)
def test_twice_is_once_and_leaves_the_input_alone(kind: str, version: str, dice: Random) -> None:
    body = an_object(version, kind, dice)
    before = copy.deepcopy(body)
    first = convert(body, OTHER[body["apiVersion"]])
    kept = copy.deepcopy(first)
    second = there_and_back(first)
    assert (before, kept) == (body, first)
    assert first.get("spec") == second.get("spec")


def with_sorted_mounts(fields: Object) -> Object:
    """The same with the mounts of each container in the order of their texts."""

    def sorted_in(value: object, name: str = "") -> object:
        if isinstance(value, dict):
            return {key: sorted_in(inner, key) for key, inner in value.items()}
        if not isinstance(value, list):
            return value
        items = [sorted_in(inner) for inner in value]
        return sorted(items, key=partial(json.dumps, sort_keys=True)) if name == "volumeMounts" else items

    return {name: sorted_in(value, name) for name, value in with_some_parts(fields).items()}


@EVERY_VERSION
@pytest.mark.parametrize("kind", SHORT_NAMES)
@given(DICE)
def test_a_payload_of_another_object_does_no_harm(kind: str, version: str, dice: Random) -> None:
    """Fields that have changed since they were saved, in any way: what is then converted comes back.

    Mounts may come back in another order: which are caches is what had been saved.
    """
    body = an_object(version, kind, dice)
    other = next(each for each in API_VERSIONS if each != version)
    foreign = an_object(other, kind, dice)
    foreign.get("spec", {}).get("deploymentOverrides", {}).pop("workersImage", None)  # becomes the image
    short = SHORT_NAMES[kind]
    body["metadata"]["annotations"] = {
        f"nvidia.com/{short}-spec": json.dumps({"version": 1, "spec": foreign.get("spec", {})}),
        f"nvidia.com/{short}-status": json.dumps(foreign.get("status", {})),
    }
    first = convert(body, API_VERSIONS[other])
    again = there_and_back(first)
    assert with_sorted_mounts(first.get("spec", {})) == with_sorted_mounts(again.get("spec", {}))


@EVERY_VERSION
@EVERY_KIND
@given(DICE)
def test_an_object_has_the_payload_of_one_version_only(kind: str, version: str, dice: Random) -> None:
    """A payload in the annotations is one of the version that the object is not in."""
    body = an_object(version, kind, dice)
    foreign = dict.fromkeys(PAYLOADS, '{"version":1,"spec":{"ofNeitherVersion":1}}')
    body["metadata"]["annotations"] = {**foreign, "mine": "1", "nvidia.com/dgd-note": "2"}
    metadata = convert(body, OTHER[body["apiVersion"]])["metadata"]
    assert {"mine": "1", "nvidia.com/dgd-note": "2"}.items() <= metadata["annotations"].items()
    short = SHORT_NAMES.get(kind)
    ours = {
        name: text
        for name, text in metadata["annotations"].items()
        if name.startswith(f"nvidia.com/{short}-s")
    }
    assert not [text for text in ours.values() if "ofNeitherVersion" in text]


@pytest.mark.parametrize("resource", LATER_RESOURCES)
@given(DICE)
def test_what_the_schema_of_v1beta1_takes_is_converted(resource: type[Resource], dice: Random) -> None:
    with suppress(ConversionError):
        convert(odd_document(resource, dice), OLD)


@pytest.mark.parametrize("resource", OLD_KINDS)
@given(DICE)
def test_whatever_the_schema_takes_is_converted_there_and_back(
    resource: type[Resource], dice: Random
) -> None:
    body = defaulted(odd_document(resource, dice))
    with suppress(ConversionError):
        first = convert(body, NEW)
        assert first.get("spec") == there_and_back(first).get("spec")


@EVERY_VERSION
@EVERY_KIND
@given(DICE, JSON)
def test_no_json_makes_conversion_fail_otherwise(kind: str, version: str, dice: Random, odd: Any) -> None:
    body = with_odd_value(an_object(version, kind, dice), odd, dice)
    with suppress(ConversionError):
        convert(body, OTHER[API_VERSIONS[version]])
    if isinstance(body, dict):
        with suppress(ConversionError):
            seen(body)


def with_odd_value(body: Any, odd: Any, dice: Random) -> Any:
    """The same JSON with one value replaced."""
    if dice.random() < 0.15 or not body or not isinstance(body, dict | list):
        return odd
    if isinstance(body, list):
        at = dice.randrange(len(body))
        return [*body[:at], with_odd_value(body[at], odd, dice), *body[at + 1 :]]
    name = dice.choice([*body])
    return {**body, name: with_odd_value(body[name], odd, dice)}


@EVERY_VERSION
@pytest.mark.parametrize("kind", SHORT_NAMES)
@given(DICE, JSON)
def test_no_note_of_what_was_typed_brings_more_than_empty_values(
    kind: str, version: str, dice: Random, odd: Any
) -> None:
    other = next(each for each in API_VERSIONS if each != version)
    body, foreign = an_object(version, kind, dice), an_object(other, kind, dice)
    plain = convert(body, API_VERSIONS[other])
    note = json.dumps(with_odd_value({"spec": foreign.get("spec", {})}, odd, dice))
    body["metadata"]["annotations"] = {f"nvidia.com/{SHORT_NAMES[kind]}-typed": note}
    noted = convert(body, API_VERSIONS[other])
    assert without_zeros(plain.get("spec", {})) == without_zeros(noted.get("spec", {}))


@EVERY_VERSION
@pytest.mark.parametrize("kind", SHORT_NAMES)
@pytest.mark.parametrize("value", ["", []])
def test_a_note_of_a_value_of_another_type_is_of_no_effect(kind: str, version: str, value: Any) -> None:
    other = next(each for each in API_VERSIONS if each != version)
    body = an_object(version, kind, Random(1))  # noqa: S311
    del body["spec"]
    plain = convert(body, API_VERSIONS[other])
    body["metadata"]["annotations"] = {f"nvidia.com/{SHORT_NAMES[kind]}-typed": json.dumps({"spec": [value]})}
    assert plain.get("spec") == convert(body, API_VERSIONS[other]).get("spec")


@given(JSON, JSON)
def test_no_json_at_all_makes_it_fail_otherwise(body: Any, version: Any) -> None:
    with pytest.raises(ConversionError):
        convert(body, OLD)
    with pytest.raises(ConversionError):
        convert({"apiVersion": version, "kind": body, "spec": body}, NEW)
