"""An API server with objects that do not fit their types, for commands that read them."""

import pytest

from dynamo_operator.crds import RESOURCES
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel
from kube_runtime.client.client import Answer, Request
from kube_runtime.types.meta import Object, Resource
from kube_runtime.wire import path_of
from scripted.connections import connect_to
from scripted.transport import answer
from simulated.server import Server


def create(server: Server, type_: type[Resource], name: str, **body: object) -> None:
    metadata: Object = {"namespace": "prod", "name": name, "finalizers": [FINALIZER]}
    server.storage.create(path_of(type_.KIND), type_.KIND.manifest(metadata, **body))


class Api(Server):
    """An API server that says which object is not there, as a real one does."""

    async def send(self, request: Request) -> Answer:
        sent = await super().send(request)
        if sent.status != 404:
            return sent
        name = request.path.rpartition("/")[2]
        details = {"name": name}
        body = {"kind": "Status", "message": "no", "code": 404, "reason": "NotFound", "details": details}
        return answer(404, body)


def odd_server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """An API server with two graphs and a model; one graph and the model do not fit their types."""
    server = Api()
    connect_to(server, monkeypatch)
    for type_ in RESOURCES:
        server.storage.objects[path_of(type_.KIND)] = {}
    create(server, DynamoGraphDeployment, "chat", spec={"services": {}})
    create(server, DynamoGraphDeployment, "odd", spec={"services": 5})
    endpoints = [{"loadedName": "x"}, {"loadedName": ""}, 7]
    create(server, DynamoModel, "lora", spec=[], status={"endpoints": endpoints})
    return server
