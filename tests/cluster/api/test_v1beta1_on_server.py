"""The CRDs with both versions on a real API server, which stores v1beta1, so that nothing is converted."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.world import Refused, World
from dynamo_operator.crds import LATER_RESOURCES, custom_resource_definitions
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Kind, Object
from specs.v1beta1 import CASES, DEFAULTED

EXAMPLES = Path(__file__).parents[3] / "examples"
GROUP = "later.example.com"
"""Not ours, whose CRDs the other tests of this API server need with one version."""

KINDS: dict[str, Kind] = {
    resource.KIND.name: replace(resource.KIND, group=GROUP, plural=resource.KIND.plural)
    for resource in LATER_RESOURCES
}
ABSENT = ConversionWebhook("default", "absent")
"""A webhook that is never called: requests are in the stored version."""


def definitions() -> Iterator[Object]:
    """The CRDs with two versions, in that group and without short names."""
    for definition in custom_resource_definitions(ABSENT):
        spec = definition["spec"]
        if "conversion" in spec:
            names = {name: text for name, text in spec["names"].items() if isinstance(text, str)}
            metadata = {"name": f"{names['plural']}.{GROUP}"}
            yield {**definition, "metadata": metadata, "spec": {**spec, "group": GROUP, "names": names}}


@pytest.fixture(scope="module")
def served(control_plane: ControlPlane) -> ControlPlane:
    """The control plane, once the CRDs are established."""
    body = {"apiVersion": "v1", "kind": "List", "items": [*definitions()]}
    apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
    control_plane.kubectl(*apply, input=msgspec.json.encode(body).decode())
    names = [f"crd/{kind}" for kind in KINDS.values()]
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=180s", *names)
    return control_plane


@pytest.fixture
def world(served: ControlPlane, namespace: str) -> World:
    return served.world(namespace)


@pytest.mark.parametrize("name", CASES)
def test_a_document_is_stored_or_refused_with_the_words_of_the_rule(world: World, name: str) -> None:
    case, words = CASES[name], ""
    kind, metadata = KINDS[case.kind], {"name": "x"}
    try:
        if case.before is None:
            world.create(kind, {"metadata": metadata, "spec": case.spec}, is_tried_only=True)
        else:
            world.create(kind, {"metadata": metadata, "spec": case.before})
            world.patch(kind, "x", {"spec": {**dict.fromkeys(case.before), **case.spec}})
    except Refused as refused:
        words = str(refused)
    assert bool(case.refused) == bool(words), words
    assert case.refused in words


@pytest.mark.parametrize("name", DEFAULTED)
def test_the_server_fills_in_the_defaults(world: World, name: str) -> None:
    kind, spec, stored = DEFAULTED[name]
    document = {"metadata": {"name": "x"}, "spec": spec}
    assert stored == world.create(KINDS[kind], document, is_tried_only=True)["spec"]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("**/*.yaml")), ids=lambda path: path.stem)
def test_an_example_is_accepted_as_it_is_written(served: ControlPlane, file: Path, tmp_path: Path) -> None:
    documents = [*yaml.safe_load_all(file.read_text("utf-8"))]
    own = [
        {**each, "apiVersion": f"{GROUP}/v1beta1"}
        for each in documents
        if each.get("apiVersion") == "nvidia.com/v1beta1"
    ]
    if not own:
        assert file.parent.name in ("v1alpha1", "gitops", "production", "base")
        return
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump_all(own), "utf-8")
    how = ("--server-side", "--dry-run=server", "--validate=strict")
    assert len(own) == len(served.kubectl("apply", *how, "-f", str(manifest)).splitlines())


def test_an_absent_state_of_a_graph_is_filled_in(world: World) -> None:
    kind = KINDS["DynamoGraphDeployment"]
    world.create(kind, {"metadata": {"name": "x"}, "spec": {}})
    assert {"state": "initializing"} == world.patch(kind, "x", {"status": {}}, "status")["status"]
