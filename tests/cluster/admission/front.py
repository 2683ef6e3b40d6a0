"""What a Service does: each new connection goes to one of the backends of that moment, and stays there."""

import itertools
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 65536


class Front(socketserver.ThreadingTCPServer):
    """Forwards connections to `backends`, ports of this machine."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Forward)
        self.backends: list[int] = []
        self.turn = itertools.count()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Forward(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        """Copy both ways until both sides have said all."""
        assert isinstance(self.server, Front)
        backends = self.server.backends
        port = backends[next(self.server.turn) % len(backends)]
        with socket.create_connection(("127.0.0.1", port)) as backend:
            back = threading.Thread(target=_copy, args=(backend, self.request))
            back.start()
            _copy(self.request, backend)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):  # a side that is gone has nothing more to say
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextmanager
def front() -> Iterator[Front]:
    with Front() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
