"""The Job is that of the recorded operator but for what decision 45 changes."""

import csv
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dynamo_legacy.api import (
    ConfigMapSource,
    DynamoNimRequest,
    DynamoNimRequestSpec,
    HttpSource,
    OciSource,
    PvcSource,
    S3Source,
    Source,
)
from dynamo_legacy.build.job import FORCE, REBUILD, Build, build_hash, build_job, build_seconds, job_name
from dynamo_legacy.build.source import (
    STORAGE_NAMESPACE,
    SourceUnavailable,
    builder_settings,
    built_image,
    fetch_of,
    parse_reference,
)
from dynamo_legacy.settings import LegacySettings, Secret
from kube_runtime.types.meta import Metadata, Object

RECORDED = LegacySettings(
    endpoint="http://dynamo-store",
    api_token=Secret("token"),
    buildkit_url="tcp://dynamo-platform-dynamo-operator-buildkitd:1234",
    registry_server="registry.example.com/nvidian",
    registry_username="username",
    registry_password=Secret("password"),
    registry_secure=False,
    fetch_image="operator:1",
)
IMAGE = "registry.example.com/nvidian/yatai-bentos:yatai.seed-nr.jh2o6dqzpsgfued4"


def request(annotations: dict[str, str] | None = None, **spec: Any) -> DynamoNimRequest:
    """The request of seed 001."""
    metadata = Metadata(
        name="seed-nr--jh2o6dqzpsgfued4", namespace="c-seed-nr", uid="u", annotations=annotations or {}
    )
    spec = {"bento_tag": "seed-nr:jh2o6dqzpsgfued4", **spec}
    return DynamoNimRequest(metadata=metadata, spec=DynamoNimRequestSpec(**spec))


def job(made_of: DynamoNimRequest, settings: LegacySettings = RECORDED) -> Object:
    image = built_image(made_of, settings)
    return build_job(made_of, Build(image, fetch_of(made_of, settings), settings))


def containers(made: Object) -> tuple[Object, Object]:
    pod = made["spec"]["template"]["spec"]
    (fetcher,), (builder,) = pod["initContainers"], pod["containers"]
    return fetcher, builder


def test_the_recorded_request() -> None:
    made = job(request())
    assert {
        "yatai.ai/bento": "jh2o6dqzpsgfued4",
        "yatai.ai/bento-repository": "seed-nr",
        "yatai.ai/bento-request": "seed-nr--jh2o6dqzpsgfued4",
        "yatai.ai/is-bento-image-builder": "true",
        "yatai.ai/yatai-image-builder-separate-models": "false",
    } == made["metadata"]["labels"]
    fetcher, builder = containers(made)
    assert ["buildctl"] == builder["command"]
    assert [
        *("--addr", "tcp://dynamo-platform-dynamo-operator-buildkitd:1234", "build"),
        *("--frontend", "dockerfile.v0"),
        *("--local", "context=/workspace/buildcontext"),
        *("--local", "dockerfile=/workspace/buildcontext/env/docker"),
        *("--output", f"type=image,name={IMAGE},push=true,registry.insecure=true"),
        *("--opt", "build-arg:BUILDKIT_CACHE_MOUNT_NS=c-seed-nr"),
    ] == builder["args"]
    assert {"name": "DOCKER_CONFIG", "value": "/kaniko/.docker/"} in builder["env"]
    assert [{"secretRef": {"name": "yatai-api-token"}}] == fetcher["envFrom"]
    assert {"cpu": "100m", "memory": "1000Mi"} == fetcher["resources"]["requests"]
    mounts = [mount["mountPath"] for mount in builder["volumeMounts"]]
    assert ["/yatai", "/workspace", "/kaniko/.docker/"] == mounts
    assert 86_400 == made["spec"]["ttlSecondsAfterFinished"]
    assert "password" not in str(made)
    assert "'token'" not in str(made)


def test_a_request_with_everything() -> None:
    made = job(
        request(
            download_url="s3://bucket/key.tar",
            build_args=("A=B c",),
            image_builder_container_resources={"limits": {"cpu": "1"}},
            image_builder_extra_container_env=({"name": "K", "value": "V"},),
            image_builder_extra_pod_spec={"nodeSelector": {"n": "1"}, "containers": [{"name": "x"}]},
            downloader_container_env_from=({"secretRef": {"name": "aws"}},),
            image_build_timeout="30m",
            dockerfile="docker/Gpu.Dockerfile",
        )
    )
    fetcher, builder = containers(made)
    assert ["--opt", "build-arg:A=B c"] == builder["args"][-4:-2]
    assert {"name": "K", "value": "V"} in builder["env"]
    assert {"name": "K", "value": "V"} in fetcher["env"]
    assert {"limits": {"cpu": "1"}} == builder["resources"]
    assert [{"secretRef": {"name": "aws"}}] == fetcher["envFrom"]
    assert 1800 == made["spec"]["activeDeadlineSeconds"]
    assert {"n": "1"} == made["spec"]["template"]["spec"]["nodeSelector"]
    assert "dockerfile=/workspace/buildcontext/docker" in builder["args"]
    assert "filename=Gpu.Dockerfile" in builder["args"]


@pytest.mark.parametrize(
    ("engine", "url", "command"),
    [
        ("buildkit", "tcp://b:1", "buildctl"),
        ("buildkit-rootless", "tcp://b:1", "buildctl"),
        ("buildkit-rootless", "", "buildctl-daemonless.sh"),
    ],
)
def test_engines_of_buildkit_need_no_privilege(engine: Any, url: str, command: str) -> None:
    settings = LegacySettings(
        build_engine=engine, buildkit_url=url, registry_server="r.example.com", fetch_image="o"
    )
    _, builder = containers(job(request(download_url="http://x/y.tar"), settings))
    assert ([command], 1000) == (builder["command"], builder["securityContext"]["runAsUser"])
    assert "privileged" not in str(builder)
    has_state = "/home/user/.local/share/buildkit" in str(builder["volumeMounts"])
    assert (command == "buildctl-daemonless.sh") is has_state  # who runs a daemon has its state


def test_kaniko_has_its_own_arguments_and_needs_an_image() -> None:
    settings = structs.replace(RECORDED, build_engine="kaniko", kaniko_image="kaniko:1")
    _, builder = containers(job(request(), settings))
    assert ["/kaniko/executor"] == builder["command"]
    assert f"--destination={IMAGE}" in builder["args"]
    assert "--cache-repo=registry.example.com/nvidian/yatai-bentos" in builder["args"]
    without = structs.replace(settings, kaniko_image="")
    with pytest.raises(ValueError, match="INTERNAL_IMAGES_KANIKO"):
        job(request(), without)


@pytest.mark.parametrize(
    "source",
    [
        Source(http=HttpSource(url="https://x/y.tar", header_secret_name="h")),
        Source(s3=S3Source(uri="s3://b/k", secret_name="s")),
        Source(oci=OciSource(ref="r.example.com/a:1", secret_name="o")),
        Source(pvc=PvcSource(claim_name="c", path="a.tar")),
        Source(config_map=ConfigMapSource(name="m")),
    ],
)
def test_each_source_has_its_volumes_mounted(source: Source) -> None:
    made = job(request(source=source))
    fetcher, _ = containers(made)
    volumes = {volume["name"] for volume in made["spec"]["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in fetcher["volumeMounts"]} <= volumes


def test_a_missing_source_is_reported_with_the_fields_that_name_one() -> None:
    settings = LegacySettings(registry_server="r.example.com")
    with pytest.raises(SourceUnavailable, match=r"spec\.source or spec\.downloadUrl"):
        fetch_of(request(), settings)
    with pytest.raises(SourceUnavailable, match="unknown scheme"):
        fetch_of(request(download_url="file:///etc/passwd"), settings)


def test_the_name_is_the_same_until_what_decides_on_the_build_changes() -> None:
    name = job_name(request())
    assert name == job_name(request())
    assert name == job_name(request(annotations={"kubectl.kubernetes.io/last-applied": "x"}))
    others = (
        request(build_args=("A=1",)),
        request(annotations={REBUILD: "1"}),
        request(annotations={FORCE: "true"}),
    )
    assert 4 == len({name, *map(job_name, others)})
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63


@given(st.text(max_size=80), st.text(max_size=300))
def test_a_hash_is_one_of_its_input(argument: str, value: str) -> None:
    one = request(build_args=(argument,), annotations={REBUILD: value})
    changed = request(build_args=(argument, ""), annotations={REBUILD: value})
    assert build_hash(one) != build_hash(changed)


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(None, None), (1_800_000_000_000, 1800), ("1800000000000", 1800), ("30m", 1800), ("1h30m", 5400)],
)
def test_a_timeout_is_a_duration_or_nanoseconds(timeout: int | str | None, seconds: int | None) -> None:
    assert seconds == build_seconds(timeout)


@pytest.mark.parametrize("timeout", ["soon", "-1", "1" * 10_000 + "x", "1m; rm"])
def test_another_timeout_is_refused(timeout: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        build_seconds(timeout)


ODD = st.text(st.sampled_from('ab1:/.,="\n\\[]@$(-_é\x00'), max_size=12) | st.just("a:1")


@given(tag=ODD, prefix=ODD, image=st.none() | ODD, url=ODD, dockerfile=ODD, timeout=ODD)
def test_any_text_is_refused_or_built_under_one_name(
    tag: str, prefix: str, image: str | None, url: str, dockerfile: str, timeout: str
) -> None:
    """No text of a user adds a field to `--output`, or raises where a condition could say it."""
    made = request(
        annotations={STORAGE_NAMESPACE: prefix},
        bento_tag=tag,
        image=image,
        download_url=url,
        dockerfile=dockerfile,
        image_build_timeout=timeout,
    )
    try:
        _, builder = containers(job(made))
    except ValueError:
        return
    parse_reference(built_image(made, RECORDED).pushed)
    [output] = csv.reader([builder["args"][builder["args"].index("--output") + 1]])
    keys = [field.partition("=")[0] for field in output]
    assert ["type", "name", "push", "registry.insecure"] == keys


def test_arguments_of_users_change_no_cache_and_the_kubelet_expands_nothing_in_them() -> None:
    arguments = ("BUILDKIT_CACHE_MOUNT_NS=of-others", "A=$(YATAI_API_TOKEN)")
    _, builder = containers(job(request(build_args=arguments)))
    options = [word for word in builder["args"] if "BUILDKIT_CACHE_MOUNT_NS" in word]
    assert "build-arg:BUILDKIT_CACHE_MOUNT_NS=c-seed-nr" == options[-1]
    assert "build-arg:A=$$(YATAI_API_TOKEN)" in builder["args"]


def test_a_build_logs_in_to_the_daemon_with_the_certificate_of_its_namespace() -> None:
    settings = structs.replace(RECORDED, buildkit_client_secret="buildkitd-client")
    body = job(request(), settings)
    fetcher, builder = containers(body)
    folder = "/var/run/dynamo/buildkit"
    files = {"cacert": "ca.crt", "cert": "tls.crt", "key": "tls.key"}
    flags = [f"--tls{flag}={folder}/{file}" for flag, file in files.items()]
    assert ["--addr", settings.buildkit_url, *flags, "build"] == builder["args"][:6]
    mount = {"name": "buildkit-client", "mountPath": folder, "readOnly": True}
    assert mount in builder["volumeMounts"]
    assert mount not in fetcher["volumeMounts"]
    volume = {"name": "buildkit-client", "secret": {"secretName": "buildkitd-client"}}
    assert volume in body["spec"]["template"]["spec"]["volumes"]
    own = structs.replace(settings, build_engine="buildkit-rootless", buildkit_url="")
    assert "buildkit-client" not in str(job(request(), own))


def test_the_administrators_settings_come_first_and_may_be_in_lower_case() -> None:
    settings = builder_settings(
        {
            "extra_pod_spec": "nodeselector: {disk: ssd}\nrestartPolicy: Always",
            "build_args": "[A=1]",
            "extra_container_env": "[{name: A, value: b}]",
            "unknown": "{",
        }
    )
    assert {"nodeSelector": {"disk": "ssd"}} == settings.extra_pod_spec
    assert ("A=1",) == settings.build_args
    for empty in ("", "\n", "# nothing", "null"):
        assert builder_settings({}) == builder_settings({"build_args": empty, "extra_pod_spec": empty})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a: 1}", "build_args"),
        ("[a", "build_args"),
        ("{a: '1', a: '2', b: '1', b: '2'}", r"duplicate key 'a'; .*duplicate key 'b'"),
        ("[A=1]\n---\n[B=2]", "build_args: expected one YAML document, found 2"),
    ],
)
def test_a_setting_of_the_administrator_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        builder_settings({"build_args": text})
