"""A frontend behind the API server that gives the same response to each request."""

from dynamo_graphs.frontend import Frontend
from kube_runtime.client.client import Answer, Request
from kube_runtime.types.kinds import Service
from kube_runtime.wire import path_of
from scripted.transport import chunks

PROXY = path_of(Service.KIND, "prod", "http:chat-frontend:8000", "proxy")


class Api:
    """Answers each request with the same body, in pieces, and keeps the requests."""

    def __init__(self, *parts: bytes, status: int = 200) -> None:
        self.parts, self.status = parts, status
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Answer:
        self.asked.append(request)
        return Answer(self.status, {"content-type": "application/json"}, chunks(*self.parts))

    @property
    def frontend(self) -> Frontend:
        return Frontend(self, "chat-frontend", 8000, PROXY)
