"""The broker of the runtime's events: `broker.py SOCKET SOCKET`, run by the Python of the runtime.

Without a broker, each worker listens on all addresses of the machine for subscribers.
"""

import sys

import zmq  # type: ignore[import-not-found]


def main() -> None:
    """Pass events on until killed."""
    context = zmq.Context()
    received, sent = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for socket, path in zip((received, sent), sys.argv[1:], strict=True):
        socket.bind(f"ipc://{path}")
    zmq.proxy(received, sent)


if __name__ == "__main__":
    main()
