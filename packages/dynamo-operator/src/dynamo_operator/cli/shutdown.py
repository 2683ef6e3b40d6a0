"""The end of a process that has to end, whatever it is doing."""

import os
import signal
import sys
import threading
from typing import Final

import structlog

STOP_SECONDS: Final = 9.0
"""How long an orderly stop may take. The kubelet waits 30 s; a node that goes down may not."""

_SPARE_SECONDS: Final = 0.5


def end_within(seconds: float = STOP_SECONDS) -> None:
    """End the process after that time, unless it has ended by then.

    A thread does it and logs it. If it cannot run, because code in C holds the interpreter, the kernel does.
    """
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds + _SPARE_SECONDS)
    timer = threading.Timer(seconds, _end, [seconds])
    timer.daemon = True
    timer.start()


def _end(seconds: float) -> None:
    structlog.get_logger("setup").error("stopping took too long: ended", seconds=seconds)
    sys.stderr.flush()
    os._exit(1)
