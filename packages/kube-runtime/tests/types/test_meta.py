"""What all objects have: kinds, keys, metadata, quantities and texts of limited length."""

import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.types import meta
from kube_runtime.types.meta import Key, Kind, Metadata, OwnerReference, amount, cut, fitted, key_of

SETS = meta._Owned(meta._OwnedSpec(meta._Present()))
IN_THREADS = """
import sys, threading
from kube_runtime.types import meta
sys.setswitchinterval(1e-7)
for _ in range(100):
    class Inner(meta.Struct):
        name: str = ""
    class Outer(meta.Struct):
        parts: list[Inner] = []
    def use(start=threading.Barrier(4), type_=Outer):
        start.wait()
        meta.from_plain({"parts": [{"name": "a"}]}, type_)
    threads = [threading.Thread(target=use) for _ in range(4)]
    for each in (*map(threading.Thread.start, threads), *threads):
        each and each.join()
"""


def test_threads_may_use_a_type_for_the_first_time_at_once() -> None:
    ended = subprocess.run([sys.executable, "-c", IN_THREADS], check=False)  # noqa: S603  # our interpreter
    assert 0 == ended.returncode


def test_the_controller_is_one_of_the_owners() -> None:
    user, ours = (OwnerReference("Team", "a", "1"), OwnerReference("Graph", "b", "2", controller=True))
    assert ours == Metadata(owner_references=(user, ours)).controller
    assert Metadata(owner_references=(user,)).controller is None


def test_the_last_manager_of_the_replicas_counts() -> None:
    before = meta.FieldOwner("kubectl", "2026-01-01T00:00:00Z", SETS)
    last = meta.FieldOwner("autoscaler", "2026-01-02T00:00:00Z", SETS)
    other = meta.FieldOwner("labeller", "2026-01-03T00:00:00Z")
    assert "autoscaler" == meta.ScaledMetadata(managed_fields=(last, before, other)).replicas_set_by
    assert "" == meta.ScaledMetadata(managed_fields=(other,)).replicas_set_by


WIDGET = Kind("example.com", "v1", "Widget", "widgets")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)


def test_a_kind_is_written_as_kubectl_writes_it() -> None:
    assert ["widgets.example.com", "nodes"] == [str(WIDGET), str(NODE)]
    assert ["example.com/v1", "v1"] == [WIDGET.api_version, NODE.api_version]


def test_the_manifest_of_a_kind_has_its_key() -> None:
    body = WIDGET.manifest({"name": "a", "namespace": "lab"}, spec={"size": 1})
    assert {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}}.items() <= body.items()
    assert Key("lab", "a") == key_of(body)


def test_the_key_of_a_cluster_scoped_object_is_its_name() -> None:
    assert "a" == str(key_of(NODE.manifest({"name": "a"})))
    assert "lab/a" == str(Key("lab", "a"))


@pytest.mark.parametrize(
    ("quantity", "value"),
    [
        ("1", "1"),
        (1, "1"),
        ("1000m", "1"),
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("8Gi", str(8 * 1024**3)),
        ("2Ei", str(2 * 1024**6)),
        ("2E", "2e18"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("-2k", "-2000"),
        ("100u", "0.0001"),
        ("0." + "0" * 40 + "1", "1e-41"),
        ("9223372036854775807", "9223372036854775807"),
    ],
)
def test_the_number_of_a_quantity(quantity: str | int, value: str) -> None:
    assert Decimal(value) == amount(quantity)


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "-1e999999999",
        "1e1000000000000",
        "1e-999999999999999999999",
        "1" * 5000,
        "0." + "1" * 5000,
        "1e" + "1" * 5000,
        "9223372036854775808",
        *("", "one", "1 Gi", "1GiB", "0x1", "1_000", "Gi", "1K"),
    ],
)
def test_what_is_no_quantity_or_beyond_what_kubernetes_counts_has_no_amount(text: str) -> None:
    assert amount(text) is None


words = st.text(st.sampled_from("ab ,"), max_size=60)


def test_texts_that_fit_are_joined() -> None:
    assert "a; b" == fitted(["a", "b"], 4)
    assert "" == fitted([], 4)
    assert "a | b" == fitted(["a", "b"], 10, between=" | ")


def test_what_does_not_fit_is_counted() -> None:
    texts = ["first " * 10, "second " * 30, "third", "fourth"]
    found = fitted(texts, 200)
    assert found.startswith(texts[0])
    assert found.endswith("second… (and 2 more)")
    assert found == fitted([*texts[:2], "another", "one"], 200)


def test_too_little_room_is_not_used_for_half_a_text() -> None:
    assert "a" * 100 + " (and 1 more)" == fitted(["a" * 100, "b" * 100], 150)


def test_a_text_is_cut_after_a_word() -> None:
    assert "one two…" == cut("one two, three", 12)
    assert "aaaa…" == cut("a" * 9, 5)
    assert "short" == cut("short", 5)


@given(st.lists(words, max_size=12), st.integers(60, 300))
def test_it_fits_and_begins_as_the_first_text_does(texts: list[str], limit: int) -> None:
    found = fitted(texts, limit)
    assert len(found) <= limit
    if texts:
        assert found.startswith(texts[0][:20].rstrip(" ,;:"))
