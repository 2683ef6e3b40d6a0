"""Find the API server and the credentials for it."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kube_runtime.client.http import (
    FOLDER,
    USER_AGENT,
    AiohttpTransport,
    Credentials,
    InCluster,
    is_in_cluster,
)
from kube_runtime.errors import ConfigError

if TYPE_CHECKING:
    from kube_runtime.client.kubeconfig import Overrides


async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    overrides: "Overrides | None" = None,
    user_agent: str = USER_AGENT,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    service_account: Path = FOLDER,
) -> AiohttpTransport:
    """Load credentials and return the transport to the API server. It sends no request yet.

    The first of these counts: `kubeconfig`, the files in KUBECONFIG, the ServiceAccount of a pod (unless a
    `context` is given), `~/.kube/config`. `user_agent`, such as `greetings/1.0`, appears in audit logs.

    Raises:
        ConfigError: there are no usable credentials.
    """
    credentials = await asyncio.to_thread(
        _credentials, kubeconfig, context, overrides, environ, home, service_account
    )
    await credentials.config()
    headers, seconds = (overrides.impersonated, overrides.request_seconds) if overrides else ((), None)
    return AiohttpTransport(credentials, user_agent=user_agent, headers=headers, request_seconds=seconds)


def _credentials(
    kubeconfig: Path | None,
    context: str | None,
    overrides: "Overrides | None",
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
    elif context is None and overrides is None and is_in_cluster(environ, service_account):
        return InCluster(environ, service_account)
    else:
        paths = [(home or Path.home()) / ".kube" / "config"]
        if not paths[0].exists():
            text = f"no --kubeconfig, KUBECONFIG is not set, not in a pod, no {paths[0]}"
            raise ConfigError("credentials", f"none found: {text}")
    # Imported here, because a pod needs neither kubeconfig files nor logins.
    from kube_runtime.client.kubeconfig import Kubeconfig

    return Kubeconfig(paths, context, overrides)


def is_own_cluster(
    kubeconfig: Path | None, environ: Mapping[str, str] = os.environ, service_account: Path = FOLDER
) -> bool:
    """Whether the credentials are those of a pod, so that the process runs in the cluster itself."""
    if kubeconfig is not None or any(environ.get("KUBECONFIG", "").split(":")):
        return False
    return is_in_cluster(environ, service_account)
