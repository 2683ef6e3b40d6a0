"""The process that works for `worker`: reads calls from a socket and answers with their results.

The kernel ends a call that takes more CPU time than it may (`SIGPROF`), wherever it stands,
also in the middle of a pattern search in C. One that takes more memory gets a `MemoryError`.
"""

import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

LENGTH_BYTES = 8
_FRAMES = 50
"""Innermost calls of a traceback that are passed on."""
_NICENESS = 5
"""Niceness, so that the event loop has precedence on the CPU."""


def frame(content: bytes) -> bytes:
    """The content behind its length."""
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def main() -> None:
    """Work until the socket, whose file descriptor is the first argument, is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the operator ends this process, not the terminal
    with suppress(OSError):
        os.nice(_NICENESS)
    with socket.socket(fileno=int(sys.argv[1])) as line, line.makefile("rb") as calls:
        while content := _frame_from(calls):
            line.sendall(frame(_answer(content)))


def _frame_from(stream: BufferedReader) -> bytes:
    """The next frame; empty at the end."""
    return stream.read(int.from_bytes(stream.read(LENGTH_BYTES), "big"))


def _answer(content: bytes) -> bytes:
    """A pickled pair of an outcome and its value.

    The outcomes are `result` with what the function returned, `error` with the exception and the text of its
    traceback, and `memory` with None.
    """
    seconds, memory_bytes, recursion_limit, call = pickle.loads(content)  # noqa: S301 - of our own parent
    sys.setrecursionlimit(recursion_limit)
    function, args = pickle.loads(call)  # noqa: S301 - imports what it needs, before the limits count
    try:
        _limit(seconds, memory_bytes)
        return pickle.dumps(("result", function(*args)), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return pickle.dumps(("memory", None))
    except Exception as error:  # noqa: BLE001 - any function may run here; the caller raises the same exception
        return _failure(error)
    finally:
        _unlimit()


def _failure(error: Exception) -> bytes:
    """The exception for the caller. Pickle leaves tracebacks and causes out, so their text goes along."""
    text = "".join(traceback.format_exception(error, limit=-_FRAMES))
    try:
        answer = pickle.dumps(("error", (error, text)))
        pickle.loads(answer)  # noqa: S301 - some exceptions can be written and not read
    except Exception:  # noqa: BLE001 - `__reduce__` and `__init__` of any exception run here; its text has no such
        # part that fails, and says the type, the message and where it was raised.
        summary = traceback.format_exception_only(error)[-1].strip()
        return pickle.dumps(("error", (RuntimeError(summary), text)))
    return answer


def _limit(seconds: float, memory_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _unlimit() -> None:
    signal.setitimer(signal.ITIMER_PROF, 0)
    hard: Any = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


if __name__ == "__main__":
    main()
