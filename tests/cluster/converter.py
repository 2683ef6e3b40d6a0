"""A conversion webhook that no operator is: for operators without webhooks on kinds with two versions."""

import base64
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cluster.conftest import ControlPlane
from cluster.served import serve
from dynamo_operator.versions.review import Conversion, Converter, conversion_in
from kube_runtime.crd import ConversionWebhook
from kube_runtime.tls import new_authority


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a ConversionReview."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        conversion = Conversion(conversion_in(body), Converter())
        while (answer := conversion.answer()) is None:
            pass
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as in http.server
        """Log nothing."""


@contextmanager
def converter() -> Iterator[ConversionWebhook]:
    """A server that converts, as a CRD names it."""
    now, life, host = datetime.now(UTC), timedelta(days=1), "127.0.0.1"
    authority = new_authority("converter", now=now, life=life)
    pair = authority.issue("converter", [host], now=now, life=life)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer((host, 0), _Handler) as server:
        server.daemon_threads = True
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        bundle = base64.b64encode(authority.pem).decode()
        try:
            yield ConversionWebhook(
                url=f"https://{host}:{server.server_address[1]}/convert", ca_bundle=bundle
            )
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def stored_in(kinds: ControlPlane, version: str) -> Iterator[None]:
    """Have the API server store our kinds in a version, and serve both; afterwards v1alpha1 alone.

    Deletes all objects of our kinds, before and afterwards.
    """
    (other,) = {"v1alpha1", "v1beta1"} - {version}
    with converter() as webhook:
        serve(kinds, version, other, conversion=webhook)
        try:
            yield
        finally:
            serve(kinds, "v1alpha1")
