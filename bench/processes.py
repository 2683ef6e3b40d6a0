"""CPU and memory of a process. Source: proc_pid_stat(5), proc_pid_status(5)."""

import os
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_FIRST_AFTER_NAME = 3  # number of the first field after the name in parentheses
_USER, _SYSTEM = 14, 15


@dataclass(frozen=True, slots=True)
class Process:
    """Any process of this machine."""

    pid: int

    def cpu_seconds(self) -> float:
        """User and system CPU time of all its threads."""
        text = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rpartition(")")[2].split()
        used = (int(fields[number - _FIRST_AFTER_NAME]) for number in (_USER, _SYSTEM))
        return sum(used) / _TICKS

    def resident_mib(self) -> float:
        """Current resident memory."""
        return self._status("VmRSS")

    def peak_mib(self) -> float:
        """Peak resident memory."""
        return self._status("VmHWM")

    def _status(self, name: str) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        raise LookupError(name)
