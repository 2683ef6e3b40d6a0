"""Which kinds are listed for the objects of a graph, and how."""

from dynamo_graphs.members import Members, members
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.types.meta import Key, Object
from scripted.transport import answer


class Cluster:
    """An API server with some lists; what is asked of it is kept."""

    def __init__(self, lists: dict[str, list[Object]], refused: tuple[str, ...] = ()) -> None:
        self.lists = lists
        self.refused = refused
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Answer:
        self.asked.append(request)
        plural = request.path.rpartition("/")[2]
        code = 200
        body: Object = {"metadata": {"resourceVersion": "1"}, "items": self.lists.get(plural)}
        if request.path == "/apis":
            body = {"groups": [{"name": each} for each in ("apps", "nvidia.com")]}
        elif plural in self.refused:
            code, body = 403, {"kind": "Status", "message": f"no {plural} for you", "code": 403}
        elif plural not in self.lists:
            code, body = 404, {"kind": "Status", "message": "no such kind", "code": 404}

        return answer(code, body)


async def found_in(cluster: Cluster) -> Members:
    return await members(Client(cluster), Key("prod", "chat"))


async def test_kinds_that_are_served_are_asked_for_and_pods_by_their_graph() -> None:
    cluster = Cluster({"pods": []})
    assert () == (await found_in(cluster)).unread
    assert not [each for each in cluster.asked if "grove.io" in each.path or "leaderworkerset" in each.path]
    (query,) = (each.query for each in cluster.asked if each.path.endswith("/pods"))
    assert "nvidia.com/dynamo-graph-deployment-name=chat" == query["labelSelector"]
    assert "500" == query["limit"]


async def test_a_kind_that_may_not_be_listed_is_named_once() -> None:
    owners = [{"kind": "x", "name": "x", "uid": "u-chat"}]
    deployment = {"metadata": {"name": "d", "ownerReferences": owners}}
    cluster = Cluster({"deployments": [deployment]}, refused=("pods", "services"))
    found = await found_in(cluster)
    assert ["d"] == [each.metadata.name for each in found.by_owner["u-chat"]]
    assert {f"cannot list {it}: no {it} for you" for it in cluster.refused} == set(found.unread)
