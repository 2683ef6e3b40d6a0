"""A graph in v1beta1, as the operator computes with it, mounts what its pod template declares."""

from typing import Any

from dynamo_operator.shared.seen import seen
from kube_runtime.types.meta import Object

MEMORY: Object = {"name": "dshm", "mountPath": "/memory"}
READ_ONLY: Object = {"name": "models", "mountPath": "/models", "readOnly": True, "subPath": "qwen"}
OF_A_PVC: Object = {"name": "data", "mountPath": "/data"}
VOLUMES: list[Object] = [
    {"name": "dshm", "emptyDir": {"medium": "Memory"}},
    {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
]


def component(*mounts: Object, **fields: Any) -> Object:
    main = {"name": "main", "image": "i", "volumeMounts": list(mounts)}
    return {"name": "w", "podTemplate": {"spec": {"containers": [main], "volumes": VOLUMES}}, **fields}


def document(kind: str, spec: Object) -> Object:
    return {"apiVersion": "nvidia.com/v1beta1", "kind": kind, "metadata": {"name": "g"}, "spec": spec}


def service(one: Object) -> Object:
    """The service of a component, which is the same in a graph and on its own."""
    graph = seen(document("DynamoGraphDeployment", {"components": [one]}))
    found: Object = graph["spec"]["services"]["w"]
    alone = seen(document("DynamoComponentDeployment", one))["spec"]
    assert found == {name: value for name, value in alone.items() if name != "serviceName"}
    return found


def test_a_volume_that_the_pod_declares_is_mounted_as_it_was_written() -> None:
    found = service(component(MEMORY, OF_A_PVC, READ_ONLY))
    assert [MEMORY, READ_ONLY] == found["extraPodSpec"]["mainContainer"]["volumeMounts"]
    assert [{"name": "data", "mountPoint": "/data"}] == found["volumeMounts"]
    assert VOLUMES == found["extraPodSpec"]["volumes"]


def test_without_other_mounts_there_is_no_list_of_them() -> None:
    assert "volumeMounts" not in service(component(MEMORY))


def test_a_mount_of_a_pvc_that_says_more_keeps_it() -> None:
    more = {**OF_A_PVC, "subPath": "x"}
    found = service(component(more))
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert [*VOLUMES, claim] == found["extraPodSpec"]["volumes"]
    assert [more] == found["extraPodSpec"]["mainContainer"]["volumeMounts"]
    assert "volumeMounts" not in found
    found = service(component(more, {**OF_A_PVC, "mountPath": "/whole"}))
    assert VOLUMES == found["extraPodSpec"]["volumes"]
    assert [{"name": "data", "mountPoint": "/whole"}] == found["volumeMounts"]


def test_a_compilation_cache_stays_one() -> None:
    found = service(component(MEMORY, compilationCache={"pvcName": "cache", "mountPath": "/cache"}))
    cache = {"name": "cache", "mountPoint": "/cache", "useAsCompilationCache": True}
    assert [cache] == found["volumeMounts"]


def test_what_was_written_stays_as_it_was() -> None:
    written = document("DynamoGraphDeployment", {"components": [component(READ_ONLY)]})
    again = document("DynamoGraphDeployment", {"components": [component(READ_ONLY)]})
    seen(written)
    assert again == written


def test_a_mount_without_a_name_and_odd_volumes_are_those_of_a_file_that_nothing_has_validated() -> None:
    mounts: Any = [{"mountPath": "/a", "readOnly": True}, MEMORY]
    one = component(*mounts)
    one["podTemplate"]["spec"]["volumes"] = [None, {"name": {}}, *VOLUMES]
    found = service(one)["extraPodSpec"]
    assert mounts == found["mainContainer"]["volumeMounts"]
    assert VOLUMES == found["volumes"][-2:]
