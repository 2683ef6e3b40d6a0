"""ConfigMaps of results: a name that belongs to another becomes a new one, and its content stays."""

from msgspec.structs import replace

from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, Output
from dynamo_operator.requests.results import is_own_config_map, new_names, tracking
from kube_runtime.kind import Object
from kube_runtime.types.meta import Metadata, OwnerReference

REQUEST = DynamoGraphDeploymentRequest(Metadata(name="r", namespace="n", uid="u"))
CONTROLLER = OwnerReference(
    api_version="nvidia.com/v1alpha1",
    kind="DynamoGraphDeploymentRequest",
    name="r",
    uid="u",
    controller=True,
)
OURS = Output(Metadata(name="curves", namespace="n", labels=tracking(REQUEST)))


def found(name: str) -> Object:
    """A ConfigMap that profiling found."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_free_name_and_our_own_stay() -> None:
    assert {} == new_names(REQUEST, [found("curves")], {})
    assert {} == new_names(REQUEST, [found("curves")], {"curves": OURS})


def test_a_name_of_another_becomes_a_new_one() -> None:
    stranger = Output(Metadata(name="curves", namespace="n"))
    assert {"curves": "curves-r"} == new_names(
        REQUEST, [found("curves"), found("config")], {"curves": stranger}
    )


def test_labels_alone_do_not_make_a_config_map_ours_that_another_controls() -> None:
    owned = replace(OURS.metadata, owner_references=(CONTROLLER,))
    foreign = replace(OURS.metadata, owner_references=(replace(CONTROLLER, uid="other"),))
    assert is_own_config_map(REQUEST, replace(OURS, metadata=owned))
    assert not is_own_config_map(REQUEST, replace(OURS, metadata=foreign))
