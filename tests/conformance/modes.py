"""The clusters on which the recorded operator ran: which optional APIs there were, and how it was set."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_SYSTEM = "dynamo-system"
MPI_SECRET = "mpi-run-ssh-secret"

COMMON = (
    "--planner-cluster-role-name=dynamo-operator-planner",
    "--dgdr-profiling-cluster-role-name=dynamo-operator-dgdr-profiling",
    "--epp-cluster-role-name=dynamo-operator-epp",
    f"--mpi-run-ssh-secret-name={MPI_SECRET}",
    f"--mpi-run-ssh-secret-namespace={_SYSTEM}",
    "--operator-version=bench",
    "--profiling-copier-image=bitnami/kubectl:latest",  # the default there
    f"--natsAddr=nats://dynamo-platform-nats.{_SYSTEM}.svc.cluster.local:4222",
    f"--etcdAddr=dynamo-platform-etcd.{_SYSTEM}.svc.cluster.local:2379",
)
FLAGS = (
    "--ingress-controller-class-name=nginx",
    "--ingress-host-suffix=apps.example.com",
    "--ingress-controller-tls-secret-name=wild-tls",
    "--model-express-url=http://mx:8001",
    "--prometheus-endpoint=http://prom:9090",
    "--discovery-backend=etcd",
    "--grove-termination-delay=7m",
)


@dataclass(frozen=True, slots=True)
class Mode:
    """One cluster. `like_none`: what was not recorded was the same as on the cluster `none`.

    `is_legacy`: the operator of the older generation ran there, with these `variables`.
    """

    name: str
    crds: tuple[str, ...]
    flags: tuple[str, ...] = COMMON
    like_none: bool = False
    is_legacy: bool = False
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


_GROVE = ("inferencepool", "grove")
MODES = {
    each.name: each
    for each in (
        Mode("none", ("inferencepool",)),
        Mode("lws", ("inferencepool", "lws", "podgroup"), like_none=True),
        Mode("grove", _GROVE, like_none=True),
        Mode("grovekai", (*_GROVE, "kai")),
        Mode("flags", ("inferencepool",), (*COMMON, *FLAGS)),
        Mode("flagsgrove", _GROVE, (*COMMON, *FLAGS)),
    )
}

LEGACY_FLAGS = ("--enable-legacy-kinds", "--natsAddr=nats://nats:4222", "--etcdAddr=etcd:2379")
LEGACY_VARIABLES = {
    "BENTO_IMAGE_BUILD_ENGINE": "buildkit",
    "BUILDKIT_URL": "tcp://dynamo-platform-dynamo-operator-buildkitd:1234",
    "DOCKER_REGISTRY_BENTO_REPOSITORY_NAME": "yatai-bentos",
    "DOCKER_REGISTRY_SERVER": "registry.example.com/nvidian",
    "DOCKER_REGISTRY_SECURE": "false",
    "DOCKER_REGISTRY_USERNAME": "user",
    "DOCKER_REGISTRY_PASSWORD": "password",
    "DYNAMO_INGRESS_SUFFIX": "dev.example.com",
    "INTERNAL_IMAGES_BENTO_DOWNLOADER": "quay.io/bentoml/bento-downloader:0.0.3",
}


def _legacy(name: str, /, *more_flags: str, **more: str) -> Mode:
    variables = {**LEGACY_VARIABLES, **more}
    flags = (*LEGACY_FLAGS, *more_flags)
    return Mode(name, (), flags, is_legacy=True, variables=variables)


_CLASS = "--ingress-controller-class-name=nginx"
LEGACY_MODES = {
    each.name: each
    for each in (
        _legacy("legacy", _CLASS),
        _legacy(
            "legacy-bare",
            DOCKER_REGISTRY_USERNAME="",
            DYNAMO_INGRESS_SUFFIX="",
            ENABLE_RESTRICTED_SECURITY_CONTEXT="true",
        ),
        _legacy(
            *("legacy-prefix", _CLASS), ADD_NAMESPACE_PREFIX_TO_IMAGE_NAME="true", ESTARGZ_ENABLED="true"
        ),
        _legacy(
            *("legacy-kaniko", _CLASS),
            BENTO_IMAGE_BUILD_ENGINE="kaniko",
            KANIKO_CACHE_REPO="cache/repo",
            KANIKO_SNAPSHOT_MODE="redo",
        ),
        _legacy("legacy-rootless", _CLASS, BENTO_IMAGE_BUILD_ENGINE="buildkit-rootless"),
    )
}
"""Those of the older generation, of which each case was recorded on one."""
EVERY_MODE = {**MODES, **LEGACY_MODES}
