"""The clusters on which the recorded operator ran: which optional APIs there were, and how it was set."""

from dataclasses import dataclass

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
    """One cluster. `like_none`: what was not recorded was the same as on the cluster `none`."""

    name: str
    crds: tuple[str, ...]
    flags: tuple[str, ...] = COMMON
    like_none: bool = False


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
