"""How the LeaderWorkerSet controller is started beside a control plane: what it and the API server read."""

import base64
from pathlib import Path
from typing import Any

from cluster.multinode.leaderworkerset import settings, webhooks


def test_it_listens_on_the_loopback_address_only() -> None:
    found = settings(port=20443, certificates=Path("/certs"))
    assert {"host": "127.0.0.1", "port": 20443, "certDir": "/certs"} == found["webhook"]
    assert "0" == found["metrics"]["bindAddress"] == found["health"]["healthProbeBindAddress"]
    assert found["internalCertManagement"] == {"enable": False}


def entries() -> dict[str, dict[str, Any]]:
    """The webhooks by the path that is called."""
    return {
        webhook["clientConfig"]["url"].removeprefix("https://127.0.0.1:20443/"): webhook
        for body in webhooks(port=20443, authority=b"ca")["items"]
        for webhook in body["webhooks"]
    }


def test_the_api_server_calls_the_paths_of_its_release() -> None:
    found = entries()
    assert [
        "mutate--v1-pod",
        "mutate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
        "validate--v1-pod",
        "validate-leaderworkerset-x-k8s-io-v1-leaderworkerset",
    ] == sorted(found)
    for entry in found.values():
        assert b"ca" == base64.b64decode(entry["clientConfig"]["caBundle"])


def test_pods_of_others_start_without_it() -> None:
    expression = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    for path, each in entries().items():
        expected = [expression] if path.endswith("pod") else []
        assert expected == each["objectSelector"]["matchExpressions"]
