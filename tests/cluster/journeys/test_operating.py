"""Operate a graph: the user journeys of diagnosis, pausing, restarting, scaling, storage and deletion."""

import time

import pytest

from cluster.conditions import condition, is_ready
from cluster.journeys.user import User, graph_manifest, main
from cluster.world import CHILDREN, DEPLOYMENT, GRAPH, PODS, SERVICE
from kube_runtime.types.kinds import PersistentVolumeClaim
from kube_runtime.types.meta import Kind, Object

pytestmark = pytest.mark.cluster

RESTART_AT = "nvidia.com/restartAt"
CHAT = graph_manifest("""
    backendFramework: vllm
    services:
      Frontend:
        componentType: frontend
        replicas: 1
        extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
      a: &worker
        componentType: worker
        replicas: 1
        extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
      b: *worker
    """)
NEW_IMAGE = (
    '{spec: {services: {a: {extraPodSpec: {mainContainer: {image: "reg.example.com/vllm:2.0"}},'
    "extraPodMetadata: {annotations: {fake-kubelet-delay: 2s}}}}}}"
)


def started(user: User, text: str = CHAT) -> Object:
    user.apply(text)
    return user.ready("chat")


def test_j22_change_a_running_graph(user: User) -> None:
    started(user)
    templates = {name: user.template(f"chat-{name}") for name in ("frontend", "a", "b")}
    since = user.world.version()
    user.edit("dgd/chat", NEW_IMAGE)
    user.world.eventually(DEPLOYMENT, "chat-a", lambda it: templates["a"] != it["spec"]["template"])
    user.ready("chat")
    assert "reg.example.com/vllm:2.0" == main(user.pod("chat-a"))["image"]
    assert templates["frontend"] == user.template("chat-frontend")
    assert templates["b"] == user.template("chat-b")
    states = [
        each["object"].get("status", {}).get("state") for each in user.world.changes(GRAPH, since=since)
    ]
    assert "pending" in states
    assert "successful" == states[-1]
    user.edit("dgd/chat", "{spec: {services: {b: {replicas: 3}}}}")
    grown = user.world.eventually(
        GRAPH, "chat", lambda it: is_ready(it) and 3 == it["status"]["services"]["b"]["replicas"]
    )
    assert 3 == grown["status"]["services"]["b"]["readyReplicas"]
    user.edit("dgd/chat", "{metadata: {annotations: {team: search}}}")
    assert is_ready(user.ready("chat"))


def test_j23_gitops(user: User) -> None:
    user.apply(CHAT)
    user.ready("chat")
    user.hears("chat-b", "CreateDeployment")
    settled(user)
    before = user.versions(*CHILDREN)
    user.apply(CHAT)
    user.apply(CHAT, "--server-side", "--force-conflicts")
    user.edit("dgd/chat", "{metadata: {annotations: {applied: again}}}")
    settled(user)
    assert before == user.versions(*CHILDREN)
    uid = user.world.eventually(DEPLOYMENT, "chat-a")["metadata"]["uid"]
    user.kubectl("delete", "deployment/chat-a", "--wait=false")
    user.world.eventually(DEPLOYMENT, "chat-a", lambda it: uid != it["metadata"]["uid"])
    user.kubectl("scale", "deployment/chat-b", "--replicas=5")
    user.world.eventually(DEPLOYMENT, "chat-b", lambda it: 1 == it["spec"]["replicas"])
    note = user.world.eventually(DEPLOYMENT, "chat-b")["metadata"]["annotations"]
    assert "nvidia.com/last-applied-hash" in note
    user.ready("chat")


def settled(user: User) -> None:
    """Return when the counts of all Deployments have arrived and no child has changed for a second."""

    def is_quiet() -> bool:
        before = user.versions(*CHILDREN)
        time.sleep(1)
        is_counted = all(is_complete(each) for each in user.world.list(DEPLOYMENT))
        return is_counted and before == user.versions(*CHILDREN)

    user.world.until(is_quiet)


def is_complete(deployment: Object) -> bool:
    """Whether the status counts all wanted replicas of the newest spec."""
    status, wanted = deployment["status"], deployment["spec"]["replicas"]
    counts = {status.get(each, 0) for each in ("replicas", "updatedReplicas", "availableReplicas")}
    return {wanted} == counts and status["observedGeneration"] == deployment["metadata"]["generation"]


def restart_of(user: User, name: str) -> str | None:
    found: str | None = user.template(name)["metadata"].get("annotations", {}).get(RESTART_AT)
    return found


def completed(user: User, id_: str) -> None:
    user.world.eventually(
        GRAPH, "chat", lambda it: {"observedID": id_, "phase": "Completed"} == it["status"].get("restart")
    )


def order_of(user: User, since: str, id_: str) -> list[str]:
    """The Deployments in the order in which they got the id of a restart."""
    found: list[str] = []
    for each in user.world.changes(DEPLOYMENT, since=since):
        body = each["object"]
        notes = body["spec"]["template"]["metadata"].get("annotations", {})
        if id_ == notes.get(RESTART_AT) and body["metadata"]["name"] not in found:
            found.append(body["metadata"]["name"])
    return found


def pods(user: User) -> set[str]:
    found = (each["metadata"] for each in user.world.list(PODS))
    return {each["name"] for each in found if "deletionTimestamp" not in each}


def test_j24_restart(user: User) -> None:
    started(user)
    services = ["chat-Frontend", "chat-a", "chat-b"]
    since = user.world.version()
    user.edit("dgd/chat", "{spec: {restart: {id: r1}}}")
    completed(user, "r1")
    changes = user.world.changes(GRAPH, since=since)
    told = [each["object"].get("status", {}).get("restart") or {} for each in changes]
    first, *_ = (each for each in told if "r1" == each.get("observedID"))
    assert ("Restarting", ["Frontend"]) == (first["phase"], first["inProgress"])
    assert [each.lower() for each in services] == order_of(user, since, "r1")
    assert 'Restart "r1" started' == user.hears("chat", "RestartStarted")
    assert 'Restart "r1" completed' == user.hears("chat", "RestartCompleted")

    before = pods(user)
    user.edit("dgd/chat", "{spec: {restart: {id: r2, strategy: {type: Parallel}}}}")
    completed(user, "r2")
    assert not before & pods(user), "an old pod was still there when the restart was reported done"
    assert {"r2"} == {restart_of(user, each.lower()) for each in services}

    since = user.world.version()
    order = "strategy: {type: Sequential, order: [b, a, Frontend]}"
    user.edit("dgd/chat", f"{{spec: {{restart: {{id: r3, {order}}}}}}}")
    completed(user, "r3")
    assert ["chat-b", "chat-a", "chat-frontend"] == order_of(user, since, "r3")
    generations = {each: user.generation(DEPLOYMENT, each.lower()) for each in services}
    user.edit("dgd/chat", f"{{spec: {{restart: {{id: r3, {order}}}}}}}")
    user.edit("dgd/chat", "{metadata: {labels: {again: again}}}")
    settled(user)
    assert generations == {each: user.generation(DEPLOYMENT, each.lower()) for each in services}


def test_j25_delete_a_graph(user: User) -> None:
    """No finalizer has to be handled: deviation S7. The planners' ServiceAccount is deleted as well: O2."""
    claim = "{create: true, name: models, size: 1Gi, storageClass: fast, volumeAccessMode: ReadWriteMany}"
    user.apply(CHAT.replace("backendFramework: vllm", f"pvcs: [{claim}]"))
    made = user.ready("chat")
    assert "finalizers" not in made["metadata"]
    user.world.eventually(PersistentVolumeClaim.KIND, "models")
    user.kubectl("create", "serviceaccount", "theirs")
    user.kubectl("delete", "dgd/chat", "--timeout=180s")
    kinds = (*CHILDREN, PersistentVolumeClaim.KIND, PODS)

    def left() -> list[str]:
        return [each for kind in kinds for each in names(user, kind) if each not in KEPT]

    user.world.until(lambda: not left(), what=lambda: str(left()))


KEPT = ("default", "theirs")


def names(user: User, kind: Kind) -> list[str]:
    return [each["metadata"]["name"] for each in user.world.list(kind)]


def failing(how: str) -> str:
    return f"{{spec: {{services: {{a: {{extraPodMetadata: {{annotations: {{fake-kubelet: {how}}}}}}}}}}}}}"


def test_j26_read_what_is_wrong(user: User) -> None:
    started(user)
    user.edit("dgd/chat", failing("no-image"))
    broken = user.says("chat", "ImagePullBackOff")
    assert "image_pull_failed" == condition(broken)["reason"]
    assert condition(broken)["message"].startswith("a: ")
    words = user.kubectl("describe", "dgd/chat")
    assert "image_pull_failed" in words
    assert "ImagePullBackOff" in words
    assert "Blocked Pods" in words
    component = user.kubectl("describe", "dcd/chat-a")
    assert "ImagePullBackOff" in component
    header, *rows = user.columns("dcd")
    assert "AVAILABLE" in header
    assert {"chat-a": "False", "chat-b": "True", "chat-frontend": "True"} == {
        row[0]: next(each for each in row if each in ("True", "False")) for row in rows
    }
    wide = user.kubectl("get", "dgd/chat", "--output=wide")
    assert "image_pull_failed" in wide
    assert "ImagePullBackOff" in wide


ALONE = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoComponentDeployment
    metadata: {{name: {name}}}
    spec:
      componentType: {type}
      extraPodSpec: {{mainContainer: {{image: "reg.example.com/vllm-runtime:1.0"}}}}
    """


@pytest.mark.parametrize("type_", ["frontend", "worker"])
def test_j27_a_component_on_its_own(user: User, type_: str) -> None:
    """The Dynamo namespace is the component's own name: deviation O6."""
    user.apply(ALONE.format(name="solo", type=type_))
    user.kubectl("wait", "dcd/solo", "--for=condition=Available", "--timeout=180s")
    user.world.eventually(DEPLOYMENT, "solo")
    user.world.eventually(SERVICE, "solo")
    labels = user.template("solo")["metadata"]["labels"]
    assert "solo" == labels["nvidia.com/dynamo-namespace"]
    user.kubectl("delete", "dcd/solo")
    user.world.gone(DEPLOYMENT, "solo")
    user.world.gone(SERVICE, "solo")


SCALED = graph_manifest(
    """
    backendFramework: vllm
    services:
      frontend:
        componentType: frontend
        extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
      decode:
        componentType: worker
        replicas: 1
        scalingAdapter: {enabled: true}
        extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
    """,
    "g",
)


def patched(body: str) -> tuple[str, ...]:
    return ("patch", "dgd/g", "--type=merge", f"--patch={body}")


def replicas(number: int) -> str:
    return f'{{"spec": {{"services": {{"decode": {{"replicas": {number}}}}}}}}}'


def sized(user: User, number: int) -> None:
    user.world.eventually(DEPLOYMENT, "g-decode", lambda it: number == it["spec"]["replicas"])


def adapted(user: User) -> None:
    user.apply(SCALED)
    user.ready("g")
    user.kubectl("wait", "dgdsa/g-decode", "--for=condition=Ready", "--timeout=180s")


def test_j31_the_number_belongs_to_the_adapter(user: User) -> None:
    adapted(user)
    user.kubectl("scale", "dgdsa/g-decode", "--replicas=4")
    sized(user, 4)
    words = user.refused(*patched(replicas(2)))
    assert (
        "spec.services[decode].replicas cannot be modified directly when scaling adapter is enabled" in words
    )
    assert f"kubectl scale dgdsa/g-decode -n {user.namespace} --replicas=2" in words
    image = '{"extraPodSpec": {"mainContainer": {"image": "reg.example.com/vllm:2.0"}}}'
    user.kubectl(*patched(f'{{"spec": {{"services": {{"decode": {image}}}}}}}'))
    sized(user, 4)
    assert "g-decode" in user.refused(manifest=SCALED)
    user.apply(SCALED.replace("      replicas: 1\n", ""))
    sized(user, 4)


CLAIM = PersistentVolumeClaim.KIND


def with_claim(name: str, claim: str) -> str:
    return graph_manifest(
        f"""
        pvcs: [{claim}]
        services:
          Frontend: &service
            componentType: frontend
            volumeMounts: [{{name: models, mountPoint: /models}}]
            extraPodSpec: {{mainContainer: {{image: "reg.example.com/vllm-runtime:1.0"}}}}
          Worker: {{<<: *service, componentType: worker}}
        """,
        name,
    )


def test_j16_storage_that_is_missing(user: User) -> None:
    """The graph is `pending`, not `failed`: deviation K1. Nothing in it has to be corrected."""
    user.apply(with_claim("waits", "{name: models}"))
    waiting = user.says("waits", "models not found")
    assert "pending" == waiting["status"]["state"]
    user.create(a_claim("models"))
    for name in ("waits-frontend", "waits-worker"):
        assert {"name": "models", "mountPath": "/models"} in main(user.pod(name))["volumeMounts"]
    user.world.until(lambda: "not found" not in ready_message(user, "waits"))
    assert "ownerReferences" not in user.world.eventually(CLAIM, "models")["metadata"]
    words = user.refused(manifest=with_claim("sizeless", "{create: true, name: other}"))
    assert "When create is true, size, storageClass, and volumeAccessMode are required" in words


def ready_message(user: User, name: str) -> str:
    return str(condition(user.world.eventually(GRAPH, name)).get("message", ""))


def a_claim(name: str) -> Object:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    about = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**about, "spec": spec}
