"""Names of images are those of the recorded operator, and references are read as runtimes read them."""

import base64
import json
from typing import Any

import pytest

from dynamo_legacy.api import DynamoNimRequest, DynamoNimRequestSpec
from dynamo_legacy.build.source import (
    REGISTRY_SECRET,
    STORAGE_NAMESPACE,
    Reference,
    built_image,
    image_tag,
    parse_reference,
    registry_secret,
    store_url,
)
from dynamo_legacy.settings import LegacySettings, Secret
from kube_runtime.types.meta import Metadata

SERVER = "nvcr.io/nvidian/nim-llm-dev"
TAG = "frontend:jh2o6dqzpsgfued4"


def request(tag: str = TAG, annotations: dict[str, str] | None = None, **spec: Any) -> DynamoNimRequest:
    metadata = Metadata(name="r", namespace="dynamo", annotations=annotations or {})
    return DynamoNimRequest(metadata=metadata, spec=DynamoNimRequestSpec(bento_tag=tag, **spec))


@pytest.mark.parametrize(
    ("expected", "made_of", "settings"),
    [
        ("yatai.frontend.jh2o6dqzpsgfued4", request(), {}),
        ("yatai.frontend.jh2o6dqzpsgfued4.esgz", request(), {"estargz": True}),
        ("yatai.dynamo.frontend.jh2o6dqzpsgfued4", request(), {"image_has_namespace": True}),
        (
            "yatai.store.frontend.jh2o6dqzpsgfued4",
            request(annotations={STORAGE_NAMESPACE: "store"}),
            {"image_has_namespace": True},
        ),
    ],
)
def test_a_tag_is_made_of_the_graphs_tag(
    expected: str, made_of: DynamoNimRequest, settings: dict[str, Any]
) -> None:
    assert expected == image_tag(made_of, LegacySettings(**settings))


def test_a_long_tag_is_hashed() -> None:
    tag = image_tag(request(f"frontend:{'v' * 200}"), LegacySettings())
    assert tag.startswith("yatai.")
    assert 38 == len(tag)
    far = request(f"frontend:{'v' * 200}", annotations={STORAGE_NAMESPACE: "n" * 200})
    assert 38 == len(image_tag(far, LegacySettings()))


@pytest.mark.parametrize("tag", ["..:1", "a:..", ".:.", "a/../../b:1", "%2e%2e:1"])
def test_no_tag_is_a_path_in_the_store(tag: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        store_url(tag, LegacySettings(endpoint="https://store"))


def test_pods_run_the_registrys_name_and_the_build_pushes_to_the_address_inside() -> None:
    settings = LegacySettings(
        registry_server=f"{SERVER}/",
        registry_in_cluster_server="registry.kube-system:5000",
        registry_username="u",
        registry_password=Secret("p"),
        registry_secure=True,
    )
    image = built_image(request(), settings)
    assert f"{SERVER}/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4" == image.name
    assert image.pushed.startswith("registry.kube-system:5000/yatai-bentos:yatai.")
    assert (REGISTRY_SECRET, False, False) == (image.secret, image.is_insecure, image.is_own)


def test_a_path_on_docker_hub_is_kept() -> None:
    settings = LegacySettings(registry_server="docker.io/team")
    assert built_image(request(), settings).name.startswith("docker.io/team/yatai-bentos:")


def test_an_image_of_the_request_is_pushed_to_with_its_own_login() -> None:
    own = request(image="quay.io/team/chat:1", docker_config_json_secret_name="mine")
    image = built_image(own, LegacySettings(registry_server=SERVER, registry_username="u"))
    assert ("quay.io/team/chat:1", "quay.io/team/chat:1") == (image.name, image.pushed)
    assert ("mine", False, True) == (image.secret, image.is_insecure, image.is_own)
    foreign = built_image(request(image="quay.io/team/chat:1"), LegacySettings(registry_username="u"))
    assert "" == foreign.secret  # the administrator's login is for no other registry


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ({"docker_config_json_secret_name": "mine"}, {}, "dockerConfigJsonSecretName needs image"),
        ({"image": "quay.io/a,type=local:1"}, {}, "invalid image"),
        ({"image": "Q" * 10_000}, {}, "invalid image"),
        ({"image": "Team/chat:1"}, {}, "invalid image"),
        ({}, {}, "no registry"),
        ({"bento_tag": "no-version"}, {"registry_server": SERVER}, "invalid tag"),
    ],
)
def test_what_gives_no_image_is_refused(spec: dict[str, Any], settings: dict[str, Any], message: str) -> None:
    made_of = request(**{"tag": spec.pop("bento_tag", TAG), **spec})
    with pytest.raises(ValueError, match=message):
        built_image(made_of, LegacySettings(**settings))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ubuntu", Reference("docker.io", "library/ubuntu", "latest")),
        ("team/app:1", Reference("docker.io", "team/app", "1")),
        ("localhost/app", Reference("localhost", "app", "latest")),
        ("registry:5000/a/b:v1", Reference("registry:5000", "a/b", "v1")),
        (f"quay.io/a@sha256:{'0' * 64}", Reference("quay.io", "a", f"sha256:{'0' * 64}")),
    ],
)
def test_a_reference_is_read_as_runtimes_read_it(text: str, expected: Reference) -> None:
    assert expected == parse_reference(text)


def test_the_secret_has_the_login_for_the_server_with_and_without_its_path() -> None:
    settings = LegacySettings(
        registry_server=SERVER, registry_username="$oauthtoken", registry_password=Secret("s3cret")
    )
    secret = registry_secret("ml", settings)
    auths = json.loads(base64.b64decode(secret["data"][".dockerconfigjson"]))["auths"]
    assert {SERVER, "nvcr.io"} == set(auths)
    assert b"$oauthtoken:s3cret" == base64.b64decode(auths["nvcr.io"]["auth"])
    assert "s3cret" not in repr(settings)
