"""Finds the API server: which credentials count, in which order."""

import asyncio
import os
from collections.abc import Mapping
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
    await credentials.config()
    return AiohttpTransport(credentials, user_agent=user_agent)


async def default_namespace(transport: AiohttpTransport) -> str:
    """The namespace that kubectl would take: that of the context, that of the pod, else `default`.

    Raises:
        ConfigError: the files of the service account, or those of a kubeconfig, cannot be used.
    """
    from kube_runtime.client.kubeconfig import Kubeconfig

    match transport.credentials:
        case Kubeconfig() as kubeconfig:
            return await kubeconfig.namespace() or "default"
        case InCluster(folder=folder):
            return await asyncio.to_thread(own_namespace, folder)
        case _:
            return "default"


def _credentials(
    kubeconfig: Path | None,
    context: str | None,
    environ: Mapping[str, str],
    home: Path | None,
    service_account: Path,
) -> Credentials:
    named = [path for path in environ.get("KUBECONFIG", "").split(":") if path]
    if kubeconfig is not None:
        paths = [kubeconfig]
    elif named:
        listed = [Path(path).expanduser() for path in named]
        paths = [path for path in listed if path.exists()]
        if not paths:
            raise ConfigError("KUBECONFIG", f"no such file: {', '.join(map(str, listed))}")
    elif context is None and is_in_cluster(environ, service_account):
        return InCluster(environ, service_account)
    else:
        paths = [(home or Path.home()) / ".kube" / "config"]
        if not paths[0].exists():
            text = f"no --kubeconfig, KUBECONFIG is not set, not in a pod, no {paths[0]}"
            raise ConfigError("credentials", f"none found: {text}")
    # A pod does not read kubeconfig files: it does not load the code for them and for logins either.
    from kube_runtime.client.kubeconfig import Kubeconfig

    return Kubeconfig(paths, context)


def is_own_cluster(
    kubeconfig: Path | None,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = FOLDER,
) -> bool:
    """Whether the credentials are those of a pod, so that the cluster is the one that the process runs in."""
    if kubeconfig is not None or any(environ.get("KUBECONFIG", "").split(":")):
        return False
    return is_in_cluster(environ, service_account)
