"""A process of `worker_pool`: reads calls from a socket and answers with their results.

At the limit of CPU time the kernel kills the process (`SIGPROF`), even in the middle of a regular expression
search in C. At the limit of memory the call gets a `MemoryError`.
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
"""Innermost frames of a traceback to return."""
_NICENESS = 5
"""Lowers the priority, so that the event loop gets the CPU first."""


def frame(content: bytes) -> bytes:
    """The content, preceded by its length."""
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def main() -> None:
    """Answer calls until the socket, whose file descriptor is the first argument, is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the parent ends this process, not the terminal
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
    function, args = pickle.loads(call)  # noqa: S301 - imports modules, which is outside of the limits
    try:
        _limit(seconds, memory_bytes)
        return pickle.dumps(("result", function(*args)), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return pickle.dumps(("memory", None))
    except Exception as error:  # noqa: BLE001 - the caller raises the same exception
        return _failure(error)
    finally:
        _unlimit()


def _failure(error: Exception) -> bytes:
    """The exception for the caller, with the text of its traceback, which pickle leaves out."""
    text = "".join(traceback.format_exception(error, limit=-_FRAMES))
    try:
        answer = pickle.dumps(("error", (error, text)))
        pickle.loads(answer)  # noqa: S301 - some exceptions can be pickled but not unpickled
    except Exception:  # noqa: BLE001 - `__reduce__` and `__init__` of any exception run here
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
