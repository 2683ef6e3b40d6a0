"""The client on a real API server: above all, whose object a write may touch."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from kube_runtime.client.client import ABSENT, Client
from kube_runtime.client.connect import connect
from kube_runtime.crd import Field
from kube_runtime.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized, Unreachable
from kube_runtime.schema import custom_resource_definition
from kube_runtime.types.kinds import CustomResourceDefinition, SelfSubjectReview, question
from kube_runtime.types.meta import Key, Kind, Object, Resource, controller_reference
from kube_runtime.wire import decode

if TYPE_CHECKING:
    from cluster.conftest import ControlPlane
if TYPE_CHECKING:
    from cluster.conftest import ControlPlane

pytestmark = pytest.mark.cluster

OTHER_UID = "00000000-0000-0000-0000-000000000000"
GROUP = "client.test"


class ConfigMap(Resource, frozen=True):
    KIND = Kind("", "v1", "ConfigMap")

    data: dict[str, str] = {}


class Thing(Resource, frozen=True):
    KIND = Kind(GROUP, "v1", "Thing")

    status: Annotated[msgspec.Raw, Field("Anything.")] = msgspec.Raw(b"null")


@pytest.fixture
async def client(control_plane: "ControlPlane") -> AsyncIterator[Client]:
    async with await connect(control_plane.kubeconfig) as transport:
        yield Client(transport, field_manager="test")


def a_config_map(namespace: str, name: str = "a", **metadata: object) -> Object:
    return ConfigMap.KIND.manifest({"name": name, "namespace": namespace, **metadata}, data={"k": "1"})


def a_thing(namespace: str) -> Object:
    return Thing.KIND.manifest({"name": "a", "namespace": namespace})


async def owned(client: Client, owner: str, body: Object) -> Object:
    """The object with a new owner of that name; an owner that does not exist would be collected."""
    created = await client.create(ConfigMap, a_config_map(body["metadata"]["namespace"], owner))
    reference = controller_reference(created, created.KIND)
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


@pytest.fixture
async def things(control_plane: "ControlPlane", client: Client) -> None:
    await client.apply(CustomResourceDefinition, custom_resource_definition(Thing), force=True)
    name = f"crd/things.{GROUP}"
    await asyncio.to_thread(
        control_plane.kubectl, "wait", "--for=condition=Established", "--timeout=180s", name
    )


async def test_an_object_is_created_read_changed_listed_and_deleted(client: Client, namespace: str) -> None:
    key = Key(namespace, "a")
    created = await client.create(ConfigMap, a_config_map(namespace))
    assert created == await client.get(ConfigMap, key)
    patched = await client.merge_patch(
        ConfigMap, key, {"data": {"k": None, "l": "2"}}, uid=created.metadata.uid
    )
    assert {"l": "2"} == patched.data
    pages = [page async for page in client.pages(ConfigMap, namespace=namespace)]
    assert patched in pages[0].items
    await client.delete(ConfigMap, key, uid=created.metadata.uid)
    with pytest.raises(NotFound, match=f"configmaps {namespace}/a"):
        await client.get(ConfigMap, key)
    await client.delete(ConfigMap, key, uid=created.metadata.uid)


async def test_the_server_says_who_it_is(client: Client) -> None:
    assert "1" == (await client.get_json("version"))["major"]
    with pytest.raises(NotFound):
        await client.get_json("nothing", "here")


async def test_a_list_is_read_in_pages_of_one_moment(
    client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kube_runtime.client.client._PAGE", 2)
    for number in range(5):
        await client.create(ConfigMap, a_config_map(namespace, f"c{number}", labels={"set": "five"}))
    pages = [page async for page in client.pages(ConfigMap, namespace=namespace, labels="set=five")]
    assert [2, 2, 1] == [len(page.items) for page in pages]
    assert 1 == len({page.resource_version for page in pages})
    assert [] == [error for page in pages for error in page.broken]


async def test_a_watch_shows_what_happens(client: Client, namespace: str) -> None:
    (page,) = [page async for page in client.pages(ConfigMap, namespace=namespace)]
    created = await client.create(ConfigMap, a_config_map(namespace, labels={"x": "y" * 60}))
    await client.delete(ConfigMap, created.key, uid=created.metadata.uid)
    watch = client.watch(
        ConfigMap,
        namespace=namespace,
        resource_version=page.resource_version,
        fields="metadata.name=a",
        timeout_seconds=600,
    )
    async with aclosing(watch) as lines:
        changes = ((each.type, decode(ConfigMap, each.object).key) async for each in lines)
        assert ("ADDED", created.key) == await anext(changes)
        assert ("DELETED", created.key) == await anext(changes)


async def test_a_watch_ends_in_time(client: Client, namespace: str) -> None:
    (page,) = [page async for page in client.pages(ConfigMap, namespace=namespace)]
    watch = client.watch(
        ConfigMap, namespace=namespace, resource_version=page.resource_version, timeout_seconds=1
    )
    assert {"BOOKMARK"} >= {line.type async for line in watch}


async def test_a_watch_waits_for_a_version_from_the_future(client: Client, namespace: str) -> None:
    # So it is after the API server was restored from a backup.
    future = "99999999999"
    watch = client.watch(ConfigMap, namespace=namespace, resource_version=future, timeout_seconds=1)
    assert [] == [line async for line in watch]


async def test_an_apply_is_for_the_object_that_was_meant(client: Client, namespace: str) -> None:
    wanted = a_config_map(namespace)
    with pytest.raises(Conflict, match="uid mismatch"):
        await client.apply(ConfigMap, wanted, force=True, uid=OTHER_UID)
    applied = await client.apply(ConfigMap, wanted, force=True, uid=ABSENT)
    again = await client.apply(ConfigMap, wanted, force=True, uid=applied.metadata.uid)
    assert applied == again
    with pytest.raises(Conflict, match="another object now"):
        await client.apply(ConfigMap, wanted, force=True, uid=OTHER_UID)
    assert applied == await client.get(ConfigMap, applied.key)


@pytest.mark.parametrize("force", [True, False])
async def test_an_apply_that_must_create_leaves_every_other_object_alone(
    client: Client, namespace: str, force: bool
) -> None:
    foreign = await client.create(ConfigMap, a_config_map(namespace) | {"data": {"theirs": "1"}})
    with pytest.raises(Conflict, match="exists already"):
        await client.apply(ConfigMap, a_config_map(namespace), force=force, uid=ABSENT)
    assert foreign == await client.get(ConfigMap, foreign.key)


async def test_a_field_left_out_of_an_apply_goes_away_if_an_apply_made_it(
    client: Client, namespace: str
) -> None:
    two = a_config_map(namespace) | {"data": {"k": "1", "l": "2"}}
    await client.apply(ConfigMap, two, force=False, uid=ABSENT)
    applied = await client.apply(ConfigMap, a_config_map(namespace), force=True)
    assert {"k": "1"} == applied.data


async def test_without_force_a_foreign_object_is_changed_unless_a_field_is_at_odds(
    client: Client, namespace: str
) -> None:
    # Why a first apply says ABSENT: this is what the API server does without it.
    ours = await owned(client, "us", a_config_map(namespace))
    await client.create(ConfigMap, a_config_map(namespace) | {"data": {"theirs": "1"}})
    adopted = await client.apply(ConfigMap, ours, force=False)
    assert {"k": "1", "theirs": "1"} == adopted.data
    assert ["us"] == [owner.name for owner in adopted.metadata.owner_references]


async def test_without_force_a_field_of_another_manager_is_a_conflict_that_names_it(
    client: Client, namespace: str
) -> None:
    await client.create(ConfigMap, a_config_map(namespace) | {"data": {"k": "theirs"}})
    with pytest.raises(Conflict, match=r"conflict with .*\.data\.k"):
        await client.apply(ConfigMap, a_config_map(namespace), force=False)


@pytest.mark.parametrize("force", [True, False])
async def test_an_object_with_another_controller_is_never_taken_over(
    client: Client, namespace: str, force: bool
) -> None:
    theirs = await owned(client, "them", a_config_map(namespace))
    foreign = await client.create(ConfigMap, theirs | {"data": {"theirs": "1"}})
    ours = await owned(client, "us", a_config_map(namespace))
    with pytest.raises(Invalid, match="Only one reference can have Controller set to true"):
        await client.apply(ConfigMap, ours, force=force)
    assert foreign == await client.get(ConfigMap, foreign.key)


async def test_a_field_that_does_not_exist_is_invalid(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid, match="field not declared in schema"):
        await client.apply(ConfigMap, a_config_map(namespace) | {"dato": {}}, force=True)


async def test_a_merge_patch_is_for_the_object_that_was_meant(client: Client, namespace: str) -> None:
    created = await client.create(ConfigMap, a_config_map(namespace))
    patch = {"data": {"k": "2"}}
    with pytest.raises(Conflict, match="another object now"):
        await client.merge_patch(ConfigMap, created.key, patch, uid=OTHER_UID)
    assert created == await client.get(ConfigMap, created.key)
    with pytest.raises(NotFound):
        await client.merge_patch(ConfigMap, Key(namespace, "nothing"), patch, uid=OTHER_UID)


@pytest.mark.usefixtures("things")
async def test_the_status_of_a_custom_resource_needs_its_version_as_a_guard(
    client: Client, namespace: str
) -> None:
    thing = await client.create(Thing, a_thing(namespace))
    one = {"status": {"n": 1}}
    # The API server ignores the uid here. We notice, but only afterwards.
    with pytest.raises(Conflict, match="another object now"):
        await client.merge_patch(Thing, thing.key, one, subresource="status", uid=OTHER_UID)
    written = await client.get(Thing, thing.key)
    assert {"n": 1} == msgspec.json.decode(written.status)
    version = {"metadata": {"resourceVersion": thing.metadata.resource_version}}
    with pytest.raises(Conflict):
        await client.merge_patch(Thing, thing.key, {**version, "status": {"n": 2}}, subresource="status")
    assert written == await client.get(Thing, thing.key)


@pytest.mark.usefixtures("things")
async def test_an_equal_status_creates_no_new_version(client: Client, namespace: str) -> None:
    thing = await client.create(Thing, a_thing(namespace))
    uid = thing.metadata.uid
    written = [
        await client.merge_patch(Thing, thing.key, {"status": {"n": 1}}, subresource="status", uid=uid)
        for _ in range(2)
    ]
    assert written[0] == written[1]


async def test_a_delete_is_for_the_object_that_was_meant(client: Client, namespace: str) -> None:
    created = await client.create(ConfigMap, a_config_map(namespace))
    uid = created.metadata.uid
    with pytest.raises(Conflict, match="UID in the precondition"):
        await client.delete(ConfigMap, created.key, uid=OTHER_UID)
    with pytest.raises(Conflict, match="ResourceVersion in the precondition"):
        await client.delete(ConfigMap, created.key, uid=uid, resource_version="1")
    version = created.metadata.resource_version
    await client.delete(ConfigMap, created.key, uid=uid, resource_version=version)
    with pytest.raises(NotFound):
        await client.get(ConfigMap, created.key)


async def test_an_invalid_object_is_refused_with_every_cause(client: Client, namespace: str) -> None:
    bad = a_config_map(namespace, "Not_A_Name") | {"data": {"not/a/key": "1"}}
    with pytest.raises(Invalid, match=r"(?s)metadata\.name.*data\[not/a/key\]"):
        await client.create(ConfigMap, bad)


async def test_what_is_not_permitted_is_forbidden_in_the_servers_words(
    control_plane: "ControlPlane", namespace: str
) -> None:
    kubeconfig = await asyncio.to_thread(
        control_plane.instance.service_account_kubeconfig, namespace, "default"
    )
    async with await connect(kubeconfig) as transport:
        nobody = Client(transport, field_manager="test")
        who = f"system:serviceaccount:{namespace}:default"
        with pytest.raises(Forbidden, match=f'User "{who}" cannot list resource "configmaps"'):
            await anext(nobody.pages(ConfigMap, namespace=namespace))
        with pytest.raises(Forbidden, match='cannot watch resource "configmaps"'):
            await anext(nobody.watch(ConfigMap, namespace=namespace, resource_version="0", timeout_seconds=1))
        with pytest.raises(Forbidden, match='cannot patch resource "configmaps"'):
            await nobody.apply(ConfigMap, a_config_map(namespace), force=True)


async def who_am_i(client: Client) -> str:
    review = await client.create(SelfSubjectReview, question(SelfSubjectReview.KIND, {}))
    return review.status.user_info.username


def with_user(control_plane: "ControlPlane", folder: Path, user: Object) -> Path:
    """The administrator's kubeconfig with another user's credentials."""
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    content["users"] = [{"name": each["name"], "user": user} for each in content["users"]]
    path = folder / "config"
    path.write_text(yaml.safe_dump(content))
    return path


async def test_the_kubeconfig_of_the_control_plane(control_plane: "ControlPlane") -> None:
    async with await connect(control_plane.kubeconfig) as transport:
        assert "admin" in await who_am_i(Client(transport))


async def test_a_plugin_that_hands_out_tokens(
    control_plane: "ControlPlane", namespace: str, tmp_path: Path
) -> None:
    token = control_plane.instance.token_for(namespace, "default")
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    script = tmp_path / "plugin.py"
    script.write_text(f"print({json.dumps(credential)!r})")
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script)],
    }
    path = with_user(control_plane, tmp_path, {"exec": plugin})
    async with await connect(path) as transport:
        expected = f"system:serviceaccount:{namespace}:default"
        assert expected == await who_am_i(Client(transport))


async def test_a_pod_with_its_service_account(
    control_plane: "ControlPlane", namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("not-a-token")
    (tmp_path / "ca.crt").write_bytes(control_plane.ca.read_bytes())
    url = urlsplit(control_plane.server)
    environ = {"KUBERNETES_SERVICE_HOST": url.hostname or "", "KUBERNETES_SERVICE_PORT": str(url.port)}
    async with await connect(environ=environ, service_account=tmp_path) as transport:
        client = Client(transport)
        with pytest.raises(Unauthorized):
            await client.get_json("version")
        # The kubelet replaces the file; the next refusal makes us read it.
        (tmp_path / "token").write_text(control_plane.instance.token_for(namespace, "default"))
        expected = f"system:serviceaccount:{namespace}:default"
        assert expected == await who_am_i(client)


async def test_an_authority_that_is_not_the_servers(control_plane: "ControlPlane", tmp_path: Path) -> None:
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    for each in content["clusters"]:
        each["cluster"].pop("certificate-authority", None)
        each["cluster"].pop("certificate-authority-data", None)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(content))
    async with await connect(path) as transport:
        with pytest.raises(Unreachable, match=r"the certificate of .* is not trusted"):
            await Client(transport).get_json("version")
