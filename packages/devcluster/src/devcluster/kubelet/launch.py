"""Becomes a program that ends when its starter ends: `launch.py PID PROGRAM ARGUMENT…`.

A kubelet that is killed ends nothing itself. So the kernel kills its children (PR_SET_PDEATHSIG), which an
exec keeps.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_NOT_FOUND = 127


def main() -> None:
    """Replace this process by the program."""
    starter, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(starter):  # it ended before the call
        sys.exit("the kubelet has ended")
    try:
        os.execv(command[0], command)  # noqa: S606 - the program of a container
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(_NOT_FOUND)


if __name__ == "__main__":
    main()
