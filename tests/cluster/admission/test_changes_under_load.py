"""What happens to users while a certificate changes, and while no webhook answers."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from cluster.admission.asking import Asker
from cluster.admission.conftest import Install
from cluster.admission.front import front
from cluster.world import GRAPH, PATIENCE_SECONDS
from kube_runtime.types.meta import Kind
from reviews.rows import graph

CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")


@dataclass
class Load:
    """A user who creates graphs all the time, one after the other."""

    asker: Asker
    applied: int = 0
    refused: list[str] = field(default_factory=list)

    def reaches(self, applied: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.applied < applied:
            assert time.monotonic() < deadline, f"{self.applied} of {applied}"
            time.sleep(0.1)

    @contextmanager
    def running(self) -> Iterator[None]:
        stop = threading.Event()

        def apply() -> None:
            while not stop.is_set():
                told = self.asker.create(GRAPH, graph())
                self.applied += 1
                if told.code != 201:
                    self.refused.append(told.text)

        threads = [threading.Thread(target=apply) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


def test_certificates_of_two_replicas_change_while_objects_are_applied(install: Install) -> None:
    short = "--webhook-certificate-life=12s"
    with install(short) as first, install(short, url_port=first.port, registers=False) as second:
        load, seen = Load(first.asker), {first.certificate()}
        with load.running():
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(seen) < 2 and time.monotonic() < deadline:
                time.sleep(0.2)
                seen.add(first.certificate())
            load.reaches(load.applied + 50)  # the new certificate is used for a while
            load.reaches(101)
        assert second.process.ended is None
    assert [] == load.refused
    assert 2 == len(seen)
    assert load.applied > 100


def test_replicas_are_replaced_one_by_one_while_objects_are_applied(install: Install) -> None:
    with front() as service, ExitStack() as stack:
        first = stack.enter_context(install(url_port=service.port))
        service.backends = [first.port]
        load = Load(first.asker)
        with load.running():
            second = stack.enter_context(install(url_port=service.port, registers=False))
            service.backends = [second.port]
            first.process.stop()
            third = stack.enter_context(install(url_port=service.port, registers=False))
            service.backends = [third.port]
            second.process.stop()
            load.reaches(load.applied + 30)
            load.reaches(101)
    assert [] == load.refused
    assert load.applied > 100


def test_without_webhooks_only_our_kinds_are_refused(install: Install) -> None:
    with install() as found:
        found.process.stop()
        told = found.asker.create(GRAPH, graph())
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "lab"}}
        assert 500 == told.code
        assert "failed calling webhook" in told.text
        assert 201 == found.asker.create(CONFIG_MAPS, other).code
