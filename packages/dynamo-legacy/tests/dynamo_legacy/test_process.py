"""What is read for the older generation: nothing while it is off, all that its controllers use when on."""

import msgspec
import pytest

from dynamo_legacy.api import DynamoNimDeployment, DynamoNimSpec
from dynamo_legacy.deployment import DeploymentController, deployment_watches
from dynamo_legacy.names import BuilderConfig
from dynamo_legacy.nim import NimController, nim_watches
from dynamo_legacy.render import claims, nim_objects
from dynamo_legacy.request import ImageRequestController, pod_watch
from dynamo_legacy.settings import LegacySettings
from dynamo_operator import labels
from dynamo_operator.process.scope import informers
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.cache.store import Cache
from kube_runtime.types.meta import Metadata, Resource

SETTINGS = RenderSettings(ingress_class_name="nginx", virtual_service_gateway="gateway")


def test_off_it_reads_nothing() -> None:
    on = {each.type_ for each in informers(SETTINGS, with_legacy_kinds=True)}
    off = {each.type_ for each in informers(SETTINGS)}
    assert off < on
    assert not [each for each in off if each.__module__.startswith("dynamo_legacy")]


def test_every_kind_that_a_controller_uses_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YATAI_IMAGE_BUILDER_NAMESPACE", "dynamo-system")
    read = {each.type_ for each in informers(SETTINGS, with_legacy_kinds=True)}
    cache = Cache()
    watches = (*deployment_watches(cache), *nim_watches(cache), pod_watch(cache))
    controllers = (DeploymentController, NimController, ImageRequestController)
    used = {each.type_ for each in watches}
    used |= {type_ for each in controllers for type_ in (*each.owns, each.reconciles)}
    assert used <= read
    assert BuilderConfig in read


def test_all_that_is_written_is_watched_once_whatever_labels_users_set() -> None:
    mine = dict.fromkeys((*labels.SELECTING, labels.APP_MANAGED_BY, "yatai.ai/selector"), "mine")
    spec = {
        "labels": mine,
        "extraPodMetadata": {"labels": mine},
        "ingress": {"enabled": True, "labels": mine},
        "autoscaling": {"enabled": True, "maxReplicas": 2},
        "pvc": {"create": True, "size": "1Gi", "volumeAccessMode": "x", "mountPoint": "/d"},
    }
    body = {"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": spec}
    nim = msgspec.convert(body, DynamoNimDeployment)
    image = DynamoNimSpec(tag="a:b", image="c")
    facts = Facts(istio_served=True)
    around, workloads = nim_objects(nim, image, facts, SETTINGS, LegacySettings())
    read = informers(SETTINGS, with_legacy_kinds=True)
    written = [*around, *workloads, *claims(nim)]
    template = next(iter(workloads))["spec"]["template"]
    written.append({"kind": "Pod", "metadata": template["metadata"]})
    assert len(written) == 7
    for each in written:
        metadata = msgspec.convert({"labels": each["metadata"].get("labels", {})}, Metadata)
        covering = [
            informer.type_
            for informer in read
            if informer.type_.KIND.name == each["kind"]
            and informer.selector.covers(Resource(metadata), is_watched=True)
        ]
        assert len(covering) == 1, (each["kind"], covering)
