"""Credentials of a pod: the ServiceAccount that the kubelet mounts.

The token lives for an hour and the kubelet replaces the file, so it is read again every minute and after a
401.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from kube_runtime.client.auth import ClientConfig, TlsMaterial, bearer
from kube_runtime.clock import loop_time
from kube_runtime.errors import ConfigError

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0


def is_in_cluster(environ: Mapping[str, str], folder: Path = FOLDER) -> bool:
    """Whether this process runs in a pod with a ServiceAccount."""
    return "KUBERNETES_SERVICE_HOST" in environ and (folder / "token").exists()


class InCluster:
    """Credentials from the mounted ServiceAccount."""

    def __init__(
        self,
        environ: Mapping[str, str],
        folder: Path = FOLDER,
        *,
        reread_seconds: float = REREAD_SECONDS,
    ) -> None:
        host = environ["KUBERNETES_SERVICE_HOST"]
        host = f"[{host}]" if ":" in host else host  # IPv6
        self.server = f"https://{host}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}"
        self.folder = folder
        self._reread_seconds = reread_seconds
        self._material: TlsMaterial | None = None
        self._config: ClientConfig | None = None
        self._read_at = float("-inf")

    async def config(self) -> ClientConfig:
        """The configuration for the next request, its token read within the last minute.

        Raises:
            ConfigError: a file of the ServiceAccount cannot be used.
        """
        if self._config is None or loop_time() - self._read_at >= self._reread_seconds:
            return await self._renewed()
        return self._config

    async def refresh(self) -> None:
        """Read the token and the CA again.

        Raises:
            ConfigError: a file of the ServiceAccount cannot be used.
        """
        await self._renewed()

    async def _renewed(self) -> ClientConfig:
        self._config = await asyncio.to_thread(self._read)
        self._read_at = loop_time()
        return self._config

    def _read(self) -> ClientConfig:
        token = self.folder / "token"
        authorization = bearer(_content(token).decode("utf-8", "replace"), str(token))
        material = TlsMaterial(authorities=_content(self.folder / "ca.crt"))
        tls = self._config.tls if self._config else None
        if material != self._material:  # a new context means new connections
            tls, self._material = material.context(str(self.folder / "ca.crt")), material
        return ClientConfig(self.server, {"Authorization": authorization}, tls)


def namespace(folder: Path = FOLDER) -> str:
    """The namespace of this pod.

    Raises:
        ConfigError: the file of the ServiceAccount cannot be read.
    """
    return _content(folder / "namespace").decode("utf-8", "replace").strip()


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from error
    if not content.strip():
        raise ConfigError(str(path), "the file is empty")
    return content
