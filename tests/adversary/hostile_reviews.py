"""What outsiders send to the webhook port: large, deep, odd and slow requests, without credentials."""

import random
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle

from dynamo_operator.admission.configuration import REVIEWED, path_of
from dynamo_operator.graph.api import DynamoGraphDeployment
from reviews.asking import review
from reviews.mutation import mutated
from reviews.rows import component, graph, model, profiling, request, with_service

STRANGERS = 8
"""Clients, each with an address of its own, none of them the API server's."""
WAITS_SECONDS = 60.0
_MIB = 1024 * 1024
GRAPHS = path_of(DynamoGraphDeployment.KIND)
_REQUESTS, _COMPONENTS, _MODELS = (
    next(path_of(each.KIND) for each in REVIEWED if each.KIND.name.endswith(end))
    for end in ("Request", "ComponentDeployment", "Model")
)


def look_alike(services: int = 150, names: int = 100, letters: int = 190) -> bytes:
    """A review of a graph whose order has many names that look like those of its services."""
    alike = "a" * (letters - 4)
    order = [f"{alike}{number:04}" for number in range(5000, 5000 + names)]
    wanted = graph({f"{alike}{number:04}": {"componentType": "worker"} for number in range(services)})
    wanted["spec"]["restart"] = {"id": "1", "strategy": {"type": "Sequential", "order": order}}
    return review(wanted)


def post(body: bytes, path: str = GRAPHS, *lines: str, length: int | None = None) -> bytes:
    """An HTTP request with that body; `length` is what it says of its length."""
    said = len(body) if length is None else length
    head = (
        *(f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json"),
        *(f"Content-Length: {said}", "Connection: close", *lines),
    )
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def _raw_review(text: bytes) -> bytes:
    """A review whose object is that text, be it JSON or not."""
    return review("OBJECT").replace(b'"OBJECT"', text)


def _large() -> Iterator[bytes]:
    """Bodies from 50 kB to the largest that is read, and above it."""
    yield post(look_alike())
    labels = {f"l{number}": "v w" for number in range(900)}
    services = {f"s{number}": {"labels": labels} for number in range(220)}
    yield post(review(graph(services), graph(services)))
    variables = [{"name": f"V{number}", "value": "x"} for number in range(6_000)]
    yield post(review(with_service(envs=variables), with_service(envs=variables[1:])))
    yield post(review(component(envs=variables)), _COMPONENTS)
    yield post(review(graph({"x" * 3 * _MIB: {"componentType": "worker"}})))
    yield post(review(model(modelName="a/" * _MIB)), _MODELS)
    config = {f"k{number}": {"v": number} for number in range(9_000)}
    yield post(review(request(profilingConfig=profiling(**config))), _REQUESTS)
    for text in ("--a='", 'a" ', "$(", "a=", "/a"):
        container = {"image": "i", "args": [text * (200_000 // len(text))]}
        yield post(review(with_service(extraPodSpec={"mainContainer": container})))
    yield post(b"", GRAPHS, length=8 * _MIB)


def _deep() -> Iterator[bytes]:
    yield post(b"[" * 3 * _MIB)
    yield post(_raw_review(b"[" * 100_000 + b"]" * 100_000))
    for depth in (500, 5_000, 100_000):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        yield post(_raw_review(b'{"metadata":{},"spec":{"services":{"w":' + nested + b"}}}"))
        yield post(_raw_review(b'{"spec":{"profilingConfig":{"config":' + nested + b"}}}"), _REQUESTS)


def _odd() -> Iterator[bytes]:
    """What is hardly a review, or no request at all."""
    for number in (b"9" * 100_000, b"1e999999", b"-0", b"1" + b"0" * 4000 + b".5", b"NaN"):
        yield post(_raw_review(b'{"spec":{"services":{"w":{"replicas":' + number + b"}}}}"))
    for text in (b"", b"null", b"{}", b"\xff\xfe{}", b'{"a"' * 1000, b'"' + b"\\u0000" * 100_000):
        yield post(text)
    whole = review(graph())
    yield post(whole, GRAPHS, "Content-Encoding: gzip")
    yield post(whole, GRAPHS, "Transfer-Encoding: chunked")
    yield post(whole, GRAPHS, *(f"X-{number}: {'y' * 4000}" for number in range(50)))
    yield post(whole, "/" + "a" * 100_000)
    yield post(whole, GRAPHS + "%00" * 1000)
    yield post(whole, GRAPHS, length=len(whole) + 1)  # the rest never comes
    yield post(whole, GRAPHS, length=-1)
    yield b"\x16\x03\x01" * 1000
    yield b"GET / HTTP/1.1\r\n" * 1000
    elsewhere = request(autoApply=True, deploymentOverrides={"namespace": "kube-system"})
    for user in ("alice", "bob", "system:admin"):
        yield post(review(elsewhere, user=user), _REQUESTS)


def hostile_reviews(count: int) -> Iterator[bytes]:
    """So many requests; every other one is a manifest with odd things in it."""
    chance = random.Random(0)  # noqa: S311  # the same in each run
    kinds = cycle([*_large(), *_deep(), *_odd()])
    for number in range(count):
        yield post(review(mutated(chance))) if number % 4 == 3 else next(kinds)


def _stranger(port: int, sent: Sequence[bytes], number: int) -> Counter[int]:
    """The statuses that one client gets; 0 where the connection ends."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    address = (f"127.0.0.{10 + number}", 0)
    statuses: Counter[int] = Counter()
    for each in sent:
        status = 0
        with (
            suppress(OSError),
            socket.create_connection(("127.0.0.1", port), WAITS_SECONDS, address) as line,
            anybody.wrap_socket(line) as secure,
        ):
            with suppress(OSError):  # it answers before all is sent, and closes
                secure.sendall(each)
            status = _status(secure.recv(64))
        statuses[status] += 1
    return statuses


def _status(answer: bytes) -> int:
    words = answer.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def attack(port: int, count: int) -> Callable[[], Counter[int]]:
    """Begin to send hostile requests from all clients at once. What is returned waits for the end."""
    sent = list(hostile_reviews(count))
    pool = ThreadPoolExecutor(STRANGERS)
    clients = [pool.submit(_stranger, port, sent[number::STRANGERS], number) for number in range(STRANGERS)]

    def statuses() -> Counter[int]:
        with pool:
            return sum((each.result() for each in clients), Counter[int]())

    return statuses
