"""Scale a graph: the user journey of an adapter where webhooks answer.

J-29 (by hand) and the manifests of J-32 (HorizontalPodAutoscaler) and J-33 (KEDA) are
`scaling/test_guide.py`, J-32 itself is `scaling/test_scaling.py`.
"""

import pytest

from cluster.journeys.user import User, graph_manifest
from cluster.world import DEPLOYMENT

pytestmark = pytest.mark.cluster


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
