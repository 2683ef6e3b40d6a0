"""What happens to users while a certificate changes, and while nobody answers."""

import threading
import time

import pytest

from cluster.admission.conftest import Install
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.kind import Kind
from reviews.rows import graph

GRAPH = DynamoGraphDeployment.KIND
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")


@pytest.mark.timeout(150)  # two processes start, and a certificate lives for 12 s
def test_certificates_of_two_replicas_change_while_objects_are_applied(install: Install) -> None:
    short = "--webhook-certificate-life=12s"
    with install(short) as first, install(short, url_port=first.port) as second:
        seen = {first.certificate()}
        refused: list[str] = []
        applied = 0
        stop = threading.Event()

        def apply() -> None:
            nonlocal applied
            while not stop.is_set():
                told = first.asker.create(GRAPH, graph())
                applied += 1
                if told.code != 201:
                    refused.append(told.text)

        thread = threading.Thread(target=apply)
        thread.start()
        try:
            deadline = time.monotonic() + 45
            while len(seen) < 2 and time.monotonic() < deadline:
                time.sleep(0.2)
                seen.add(first.certificate())
            time.sleep(3)  # the new certificate is used for a while
        finally:
            stop.set()
            thread.join()
        assert second.process.ended is None
    assert [] == refused
    assert 2 == len(seen)
    assert applied > 100


def test_without_webhooks_only_our_kinds_are_refused(install: Install) -> None:
    with install() as found:
        found.process.stop()
        told = found.asker.create(GRAPH, graph())
        other = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": "lab"},
        }
        assert 500 == told.code
        assert "failed calling webhook" in told.text
        assert 201 == found.asker.create(CONFIG_MAPS, other).code
