"""Whether work grows faster than its input, on a machine that does other work at the same time.

The wall clock says nothing there, and to count executed lines would miss what patterns and `difflib` do in C.
So the processor's time of this thread is taken, the best of several runs, at n, 2n and 4n. The slope of the
time over the size, both as logarithms, is 1 for linear work and 2 for work that grows with the square. 1.5 is
far from both; a slope above it counts only if it is found again, three times in a row.

What is still quick at a size of which the square would take long needs no slope.
"""

import gc
import math
import time
from collections.abc import Callable

Work = Callable[[], object]

STEEPEST = 1.5
_ATTEMPTS = 3


def seconds(work: Work, runs: int = 1) -> float:
    """The processor's time that a piece of work takes, the best of several runs.

    Without that of the garbage collector, which depends on all that is in memory.
    """

    def once() -> float:
        started = time.thread_time()
        work()
        return time.thread_time() - started

    gc.disable()
    try:
        return min(once() for _ in range(runs))
    finally:
        gc.enable()


def is_steep(make: Callable[[int], Work], first: int) -> bool:
    """Whether the work that `make` prepares for a size grows faster than the size, from `first` on."""
    return all(_slope(make, first) > STEEPEST for _ in range(_ATTEMPTS))


def is_found_steep(make: Callable[[int], Work], first: int) -> bool:
    """Whether `is_steep` finds steep work, for the tests that know that it is steep.

    On a busy machine one of three slopes is now and then too low, but not ten times in a row.
    """
    return any(is_steep(make, first) for _ in range(10))


def _slope(make: Callable[[int], Work], first: int) -> float:
    times = [seconds(make(first * factor), runs=3) for factor in (1, 2, 4)]
    whole = math.log(max(times[2], 1e-9) / max(times[0], 1e-9)) / math.log(4)
    last = math.log(max(times[2], 1e-9) / max(times[1], 1e-9)) / math.log(2)
    return max(whole, 0.0) if last > STEEPEST else min(whole, last)


def is_suspect(make: Callable[[int], Work], first: int, quick_seconds: float) -> bool:
    """Whether one run each with `first` and four times as much does not rule out steep growth.

    This excludes most work as not steep; `is_steep` measures the rest several times.
    """
    if (larger := seconds(make(4 * first))) < quick_seconds:
        return False
    return larger > seconds(make(first)) * 4**STEEPEST
