"""The variables of the older generation: their names, their defaults, and what is refused at start."""

import pytest

from dynamo_legacy.settings import IGNORED, LegacySettings, Secret, host_suffix, read_legacy_settings, rows
from dynamo_operator.settings import RenderSettings


def test_an_empty_variable_is_unset() -> None:
    names = [name for setting in rows() for name in setting.variables]
    assert read_legacy_settings(dict.fromkeys(names, "")) == LegacySettings()


def test_every_name_is_declared_once() -> None:
    names = [name for setting in rows() for name in setting.variables]
    assert len({*names, *IGNORED}) == len(names) + len(IGNORED)
    assert tuple(setting.name for setting in rows()) == LegacySettings.__struct_fields__


def test_a_later_name_is_an_alias_and_the_first_counts_unless_it_is_empty() -> None:
    settings = read_legacy_settings(
        {
            "API_STORE_ENDPOINT": "http://dynamo-store",
            "DYNAMO_IMAGE_BUILD_ENGINE": "buildkit-rootless",
            "DOCKER_REGISTRY_DYNAMO_COMPONENTS_REPOSITORY_NAME": "dynamo-components",
        }
    )
    assert settings.endpoint == "http://dynamo-store"
    assert settings.build_engine == "buildkit-rootless"
    assert settings.registry_repository == "dynamo-components"
    both = {"YATAI_CLUSTER_NAME": "a", "API_STORE_CLUSTER_NAME": "b"}
    assert read_legacy_settings(both).cluster_name == "a"
    assert read_legacy_settings(both | {"YATAI_CLUSTER_NAME": ""}).cluster_name == "b"


def test_all_problems_are_reported_at_once_and_no_secret() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        read_legacy_settings(
            {
                "BENTO_IMAGE_BUILD_ENGINE": "docker",
                "ESTARGZ_ENABLED": "yes",
                "YATAI_ENDPOINT": "https://user:hunter2@store",
            }
        )
    texts = sorted(str(error) for error in raised.value.exceptions)
    assert texts == [
        "BENTO_IMAGE_BUILD_ENGINE: expected one of buildkit, buildkit-rootless, kaniko, got 'docker'",
        "ESTARGZ_ENABLED: expected true or false, got 'yes'",
        "YATAI_ENDPOINT: expected a URL without user and password, such as http://dynamo-store",
    ]


def test_secrets_are_not_printed() -> None:
    settings = read_legacy_settings({"DOCKER_REGISTRY_PASSWORD": "hunter2", "YATAI_API_TOKEN": "abc"})
    assert "hunter2" not in f"{settings} {settings!r} {settings.registry_password}"
    assert settings.registry_password.reveal() == "hunter2"
    assert settings.api_token == Secret("abc")
    assert not LegacySettings().api_token


def test_the_domain_of_hosts() -> None:
    ours = RenderSettings(ingress_host_suffix="example.com")
    theirs = LegacySettings(ingress_host_suffix="dev.example.com")
    assert host_suffix(theirs, ours) == "example.com"
    assert host_suffix(theirs, RenderSettings()) == "dev.example.com"
    assert host_suffix(LegacySettings(), RenderSettings()) == "local"
