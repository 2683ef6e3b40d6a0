"""Hostile requests to the webhook port of a real operator, which stays leader and answers its probes."""

import json
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from adversary.hostile_reviews import GRAPHS, look_alike
from adversary.probing import probing
from cluster.admission.conftest import Install, Installation
from cluster.conftest import ControlPlane
from cluster.world import PATIENCE_SECONDS
from kube_runtime.types.kinds import Lease
from kube_runtime.wire import path_of
from reviews.asking import review
from reviews.rows import graph

ELECTED = ("--leader-elect", "--leader-election-namespace=dyn", "--leader-election-id=attacked")

SLOW_SECONDS = 5.0
"""Longer than a busy machine delays an answer, shorter than one hostile review held the event loop once."""

pytestmark = pytest.mark.cluster


def posted(there: Installation, body: bytes, seconds: float = 30) -> int:
    """The status for a client without credentials; 0 where the connection ends."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(
        f"https://127.0.0.1:{there.port}{GRAPHS}", data=body, headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, context=anybody, timeout=seconds) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def holder(there: Installation) -> str:
    body = there.asker.get(path_of(Lease.KIND, "dyn", "attacked")).body
    return str(body.get("spec", {}).get("holderIdentity", ""))


def test_small_requests_of_an_outsider_end_no_leader(kinds: ControlPlane, install: Install) -> None:
    with install(*ELECTED) as there:
        there.process.says("elected")
        leader = holder(there)
        body = look_alike()
        assert 45_000 < len(body) < 64_000
        with probing(there) as probes, ThreadPoolExecutor(4) as strangers:
            started = time.monotonic()
            statuses = list(strangers.map(lambda _: posted(there, body), range(12)))
            seconds = time.monotonic() - started
        assert set(statuses) <= {200, 503}  # 503: a busy machine had no answer within 8 s
        assert seconds < PATIENCE_SECONDS, "each of them took half a minute once"
        assert [] == probes.wrong
        assert 0 < probes.slowest_seconds < SLOW_SECONDS
        assert there.process.ended is None
        assert leader
        assert leader == holder(there)


def test_the_process_stops_in_time_whatever_outsiders_send(kinds: ControlPlane, install: Install) -> None:
    services = {f"s{number}": {"labels": {f"l{each}": "v w" for each in range(900)}} for number in range(300)}
    large = review(graph(services), graph(services))
    assert 2_000_000 < len(large) < 7_000_000
    with install(*ELECTED) as there, ThreadPoolExecutor(12) as strangers:
        sent = [strangers.submit(posted, there, large, 20) for _ in range(12)]
        there.process.says("elected")
        time.sleep(0.5)  # so that some of them are being validated; the test does not need it
        started = time.monotonic()
        there.process.stop(within_seconds=60)
        assert time.monotonic() - started < 60
        assert {each.result() for each in sent} <= {0, 200, 400, 503}


def test_a_busy_port_is_one_line(kinds: ControlPlane, install: Install) -> None:
    with install(*ELECTED) as there:
        (flag,) = (each for each in there.process.flags if "health-probe" in each)
        log = there.process.log.with_name("second.log")
        second = type(there.process)(
            there.process.kubeconfig, log, (flag, f"--metrics-bind-address=127.0.0.1:{there.port}")
        )
        second.start()
        assert 1 == second.wait()
        lines = log.read_text().splitlines()
    assert not any("Traceback" in each for each in lines)
    (said,) = (each for each in lines if each.startswith("error: "))
    assert said.endswith("cannot listen: Address already in use")
    assert not [each for each in lines if "exc_info" in each or '"exception"' in each]
    assert all(json.loads(each) for each in lines if each != said)
