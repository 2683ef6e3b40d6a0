"""Which clients may request reviews: any that reaches the port, or those with a certificate of a given CA.

The API server presents a client certificate to webhooks when its AdmissionConfiguration has a kubeconfig for
them (`docs/admission.md`). Then no other client gets past the handshake.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

from dynamo_operator.admission.body_limits import RequestRefused
from kube_runtime.errors import ConfigError

_FORBIDDEN: Final = 403


@dataclass(frozen=True, slots=True)
class Clients:
    """The accepted clients: those with a certificate of the CA in `file`, with that common name.

    Without a file, any client; without a name, any client of that CA.
    """

    file: Path | None = None
    name: str = ""

    async def authorities(self) -> bytes | None:
        """The certificates of the CA as PEM. None means: clients need no certificate.

        Raises:
            ConfigError: they cannot be read.
        """
        if self.file is None:
            return None
        try:
            pem = await asyncio.to_thread(self.file.read_bytes)
        except OSError as error:
            raise ConfigError(str(self.file), error.strerror or str(error)) from error
        if b"-----BEGIN CERTIFICATE-----" not in pem:
            raise ConfigError(str(self.file), "expected certificates as PEM")
        return pem

    def check(self, http: web.Request) -> None:
        """Return if the client's certificate has that common name; the CA was checked in the handshake.

        Raises:
            RequestRefused: it has another name.
        """
        if self.file is None or not self.name:
            return
        if self.name not in _common_names(http.get_extra_info("peercert")):
            raise RequestRefused(_FORBIDDEN, "the client certificate has another common name")


ANYBODY: Final = Clients()


def _common_names(certificate: object) -> set[str]:
    """The common names of a certificate as `ssl.SSLObject.getpeercert` returns it."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    return {value for part in subject for name, value in part if name == "commonName"}
