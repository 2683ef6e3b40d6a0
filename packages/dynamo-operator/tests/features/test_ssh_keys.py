"""Which SSH keys are watched, copied and missed, and that nothing shows them."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key

from dynamo_operator.features.ssh_keys import (
    SshKeyController,
    creates_ssh_keys,
    decide,
    missing_ssh_keys,
    new_keys,
    ssh_key_copies,
    ssh_key_informers,
    ssh_key_users,
    ssh_key_watches,
    ssh_keys_target,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import SshKeys, SshKeysCopy
from dynamo_operator.shared.transforms import Owners
from kube_runtime.apply.suppression import WriteSuppression
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.errors import Forbidden
from kube_runtime.types.meta import Key, Metadata, Resource
from simulated.caches import a_cache
from simulated.server import Server, status
from specs import IMAGE, a_graph, a_service

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="system")
OWN_KEYS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="system", mpi_secret_made=True)
DATA = {"private.key": "c2VjcmV0"}
OURS = {"app.kubernetes.io/managed-by": "dynamo-operator"}


def graph(framework: str = "trtllm", nodes: int = 2, name: str = "g") -> DynamoGraphDeployment:
    main = {"image": IMAGE, "command": ["python3", "-m", f"dynamo.{framework}"]}
    pod = {"mainContainer": main}
    return a_graph({"W": a_service(multinode={"nodeCount": nodes}, extraPodSpec=pod)}, name=name)


def source(**data: str) -> SshKeys:
    return SshKeys(Metadata("keys", "system", uid="1"), type="Opaque", data=data or DATA)


def copy(**metadata: Any) -> SshKeysCopy:
    return SshKeysCopy(Metadata("keys", "prod", uid="2", **metadata), type="Opaque", data=DATA)


def cache(*objects: Resource) -> Cache:
    """A cache of all types that are read here, with these objects."""
    return a_cache((DynamoGraphDeployment, SshKeys, SshKeysCopy), objects)


def copies(wanted: DynamoGraphDeployment, *objects: Resource) -> list[Any]:
    return [each["data"] for each in ssh_key_copies(wanted, cache(*objects), SETTINGS)]


def test_only_secrets_of_one_name_are_watched() -> None:
    found = {each.type_: each.selector for each in ssh_key_informers(SETTINGS, Owners(()))}
    assert {SshKeys, SshKeysCopy} == found.keys()
    assert "system" == found[SshKeys].namespace
    assert {"metadata.name=keys"} == {each.fields for each in found.values()}
    assert [] == ssh_key_informers(RenderSettings(), Owners(()))


def test_a_graph_that_needs_them_gets_a_copy() -> None:
    assert [DATA] == copies(graph(), source())


@pytest.mark.parametrize("other", [graph("sglang"), graph(nodes=1)])
def test_other_graphs_get_none(other: DynamoGraphDeployment) -> None:
    assert [] == copies(other, source())


def test_a_new_key_is_copied_and_a_source_that_is_gone_changes_nothing() -> None:
    new = {"private.key": "bmV3"}
    assert [new] == copies(graph(), source(**new), copy(labels=OURS))
    assert [DATA] == copies(graph(), copy(labels=OURS))


def test_an_ssh_key_secret_of_another_owner_is_not_changed() -> None:
    reduced = SshKeysCopy(Metadata("keys", "prod", uid="2"))
    assert [] == copies(graph(), source(), reduced)
    assert "" == missing_ssh_keys(graph(), cache(reduced), SETTINGS)


def test_keys_that_the_operator_makes_are_never_those_of_another_namespace() -> None:
    assert {SshKeysCopy} == {each.type_ for each in ssh_key_informers(OWN_KEYS, Owners(()))}
    assert () == ssh_key_copies(graph(), cache(source()), OWN_KEYS)
    assert "prod/keys" == missing_ssh_keys(graph(), cache(source()), OWN_KEYS)
    (kept,) = ssh_key_copies(graph(), cache(source(**{"private.key": "bmV3"}), copy(labels=OURS)), OWN_KEYS)
    assert DATA == kept["data"]


def test_the_namespace_of_the_operator_has_keys_like_any_other() -> None:
    here = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="prod", mpi_secret_made=True)
    (kept,) = ssh_key_copies(graph(), cache(copy(labels=OURS)), here)
    assert DATA == kept["data"]


def test_what_is_missing_is_named() -> None:
    assert "system/keys" == missing_ssh_keys(graph(), cache(), SETTINGS)
    own = RenderSettings(mpi_secret_name="keys")
    assert "prod/keys" == missing_ssh_keys(graph(), a_cache((SshKeysCopy,)), own)
    assert "" == missing_ssh_keys(graph(), cache(source()), SETTINGS)


def test_the_source_wakes_the_graphs_that_need_it() -> None:
    needy, other = graph(), graph("vllm", name="other")
    watches = ssh_key_watches(cache(needy, other))
    woken = {key for each in watches if each.type_ is SshKeys for key in each.map_to(source())}
    assert {Key("prod", "g")} == woken
    assert () == ssh_key_watches(a_cache((DynamoGraphDeployment,)))


def test_the_objects_do_not_show_their_keys() -> None:
    for each in (source(), copy()):
        assert "c2VjcmV0" not in repr(each) + str(each)


def test_keys_are_created_once_and_only_if_a_graph_needs_them() -> None:
    key, user = Key("prod", "keys"), graph()
    users = ssh_key_users("prod", cache(user, graph("vllm", name="other")))
    assert (user,) == users
    created = decide(key, None, users, user.KIND)
    assert created is not None
    assert [user.metadata.uid] == [owner["uid"] for owner in created["metadata"]["ownerReferences"]]
    assert decide(key, copy(labels=OURS), users, user.KIND) is None
    assert decide(key, None, (), user.KIND) is None


async def test_a_refused_secret_is_remembered_for_the_graphs_that_wait_for_it() -> None:
    server, user = Server(), graph()
    server.refuse = lambda _, __: status(403, "Forbidden", "exceeded quota")
    waiting, suppression, woken = cache(user), WriteSuppression(), list[Key]()
    writer = Writer(Client(server, field_manager="test"), waiting)
    controller = SshKeyController(writer, waiting, OWN_KEYS, suppression, woken.append)
    key = Key(user.metadata.namespace, "keys")
    with pytest.raises(Forbidden):
        await controller.reconcile(key)
    refusal = suppression.refusal(ssh_keys_target(key))
    assert refusal is not None
    assert "Secret keys: exceeded quota" == refusal.message
    assert [user.key] == woken
    server.refuse = lambda _, __: None
    await controller.reconcile(key)
    assert suppression.refusal(ssh_keys_target(key)) is None


def test_the_two_keys_belong_together() -> None:
    keys = {name: base64.b64decode(text) for name, text in new_keys().items()}
    private = load_ssh_private_key(keys["private.key"], password=None)
    assert isinstance(private, RSAPrivateKey)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert public == keys["private.key.pub"].strip()


def test_ssh_keys_are_created_only_if_enabled_and_named() -> None:
    assert creates_ssh_keys(RenderSettings(mpi_secret_made=True, mpi_secret_name="k"))
    assert not creates_ssh_keys(RenderSettings(mpi_secret_made=True))
    assert not creates_ssh_keys(RenderSettings(mpi_secret_name="k", mpi_secret_namespace="n"))
