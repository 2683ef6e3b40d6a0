"""Finds the API server: which credentials count, in which order."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from kube_runtime.client.auth import Credentials
from kube_runtime.client.http import USER_AGENT, AiohttpTransport
from kube_runtime.client.in_cluster import FOLDER, InCluster, is_in_cluster
from kube_runtime.client.in_cluster import namespace as own_namespace
from kube_runtime.errors import ConfigError


async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    user_agent: str = USER_AGENT,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    service_account: Path = FOLDER,
) -> AiohttpTransport:
    """The transport to the API server, its credentials loaded; nothing has been sent yet.

    `user_agent` is who asks, such as `greetings/1.0`: the audit log has it.

    The first of these counts: `kubeconfig`, the files in KUBECONFIG, the service account of a pod (unless
    a context is named), `~/.kube/config`.

    Raises:
        ConfigError: there are no usable credentials.
    """
    credentials = await asyncio.to_thread(
        _credentials, kubeconfig, context, environ, home, service_account
    )
    await credentials.headers()
    return AiohttpTransport(credentials, user_agent=user_agent)


async def default_namespace(transport: AiohttpTransport) -> str:
    """The namespace that kubectl would take: that of the context, that of the pod, else `default`.

    Raises:
        ConfigError: the service account's files cannot be read.
    """
    from kube_runtime.client.kubeconfig import Kubeconfig

    match transport.credentials:
        case Kubeconfig(namespace=str() as found) if found:
            return found
        case InCluster(folder=folder):
            return await asyncio.to_thread(own_namespace, folder)
        case _:
            return "default"


def _kubeconfig(paths: Sequence[Path], context: str | None) -> Credentials:
    # A pod does not read kubeconfig files: it does not load the code for them and for logins either.
    from kube_runtime.client.kubeconfig import Kubeconfig

    return Kubeconfig(paths, context)


def _credentials(
    kubeconfig: Path | None,
    context: str | None,
    environ: Mapping[str, str],
    home: Path | None,
    service_account: Path,
) -> Credentials:
    if kubeconfig is not None:
        return _kubeconfig([kubeconfig], context)
    listed = [Path(each).expanduser() for each in environ.get("KUBECONFIG", "").split(":") if each]
    if listed:
        present = [path for path in listed if path.exists()]
        if present:
            return _kubeconfig(present, context)
        raise ConfigError("KUBECONFIG", f"no such file: {', '.join(map(str, listed))}")
    if context is None and is_in_cluster(environ, service_account):
        return InCluster(environ, service_account)
    default = (home or Path.home()) / ".kube" / "config"
    if default.exists():
        return _kubeconfig([default], context)
    raise ConfigError(
        "credentials",
        f"none found: no --kubeconfig, KUBECONFIG is not set, not in a pod, no {default}",
    )


def is_own_cluster(
    kubeconfig: Path | None,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = FOLDER,
) -> bool:
    """Whether the credentials are those of a pod, so that the cluster is the one that the process runs in."""
    if kubeconfig is not None or any(environ.get("KUBECONFIG", "").split(":")):
        return False
    return is_in_cluster(environ, service_account)
