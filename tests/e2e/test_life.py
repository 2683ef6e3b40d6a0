"""What containers see of a graph's life: volumes that stay, and time to end."""

import json
import time

import pytest

from cluster.conditions import is_ready
from cluster.world import PODS, World
from dynamo_operator.graph.api import DynamoGraphDeployment
from e2e.cluster import RealCluster, pods
from e2e.conftest import Report
from e2e.graphs import AT_ONCE, container, graph, idle_frontend, worker

GRAPH = DynamoGraphDeployment.KIND
GRACE_SECONDS = 16
DRAIN_SECONDS = 8
"""A worker serves for half of such a grace period before its process receives SIGTERM."""
ENDING_SECONDS = 4
"""What the process needs after that: half of what is left, so that a busy machine does not end it early."""
pytestmark = pytest.mark.cluster


def host_path(cluster: RealCluster, name: str) -> None:
    """A volume of class `host-path`, in a folder of the node."""
    body = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "host-path",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": f"/var/lib/volumes/{name}", "type": "DirectoryOrCreate"},
        },
    }
    cluster.kubectl("apply", "--filename=-", input=json.dumps(body))


def test_a_model_cache_on_a_volume_outlives_its_workers(cluster: RealCluster, world: World) -> None:
    host_path(cluster, world.namespace)
    claim = {
        "name": "cache",
        "create": True,
        "size": "1Gi",
        "storageClass": "host-path",
        "volumeAccessMode": "ReadWriteOnce",
    }
    # The first worker fills the cache; later ones find the model there.
    fill = "[ -e /cache/model ] && echo found >>/cache/log || cp -r /model /cache/model"
    serve = (
        "exec python3 -m dynamo.mocker --model-path /cache/model --model-name /model"
        " --endpoint dyn://$DYN_NAMESPACE.backend.generate"
    )
    cached = worker(
        pod={"mainContainer": container("/bin/sh", "-c", f"{fill}; {serve}")},
        volumeMounts=[{"name": "cache", "mountPoint": "/cache"}],
    )
    body = graph("cached", Frontend=idle_frontend(), Worker=cached)
    body["spec"]["pvcs"] = [claim]
    world.create(GRAPH, body)
    world.eventually(GRAPH, "cached", is_ready, within_seconds=90)
    [pod] = pods(world, "Worker")
    world.delete(PODS, pod["metadata"]["name"])
    world.gone(PODS, pod["metadata"]["name"], within_seconds=90)
    world.eventually(GRAPH, "cached", is_ready, within_seconds=90)
    [after] = pods(world, "Worker")
    shown = cluster.kubectl(
        *("exec", after["metadata"]["name"], f"--namespace={world.namespace}"), *("--", "cat", "/cache/log")
    )
    assert ["found"] == shown.split()


def test_a_deleted_graph_s_pods_have_their_grace_period_and_use_it(
    cluster: RealCluster, world: World, report: Report
) -> None:
    # It keeps serving for a while after SIGTERM, and the end of its log proves it.
    last = f"sleep {ENDING_SECONDS}; echo done >/told/end; exit 0"
    script = f"trap '{last}' TERM; while :; do sleep 0.2; done"
    place = f"/var/lib/told-{world.namespace}"
    main = container(
        *("/bin/sh", "-c", script),
        startupProbe=AT_ONCE,
        volumeMounts=[{"name": "told", "mountPath": "/told"}],
    )
    kept = {"name": "told", "hostPath": {"path": place, "type": "DirectoryOrCreate"}}
    pod = {"mainContainer": main, "terminationGracePeriodSeconds": GRACE_SECONDS, "volumes": [kept]}
    slow = worker(pod=pod, livenessProbe=AT_ONCE, readinessProbe=AT_ONCE)
    world.create(GRAPH, graph("slow", Frontend=idle_frontend(), Worker=slow))
    world.eventually(GRAPH, "slow", is_ready, within_seconds=90)
    [found] = pods(world, "Worker")
    name = found["metadata"]["name"]
    begun = time.monotonic()
    world.delete(GRAPH, "slow")
    going = world.eventually(PODS, name, lambda body: "deletionTimestamp" in body["metadata"])
    assert GRACE_SECONDS == going["metadata"]["deletionGracePeriodSeconds"]
    world.gone(PODS, name)
    took = time.monotonic() - begun
    report(
        f"{took:.1f} s with a grace period of {GRACE_SECONDS} s: the pod drains for {DRAIN_SECONDS} s, "
        f"then its process uses {ENDING_SECONDS} s"
    )
    assert took >= DRAIN_SECONDS + ENDING_SECONDS
    told = cluster.instance.node_folder / place.removeprefix("/") / "end"
    assert "done" == told.read_text().strip()
    world.until(lambda: not world.list(PODS))
