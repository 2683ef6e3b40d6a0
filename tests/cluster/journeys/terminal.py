"""A user at a terminal of so many columns: the screen when a command has ended.

What differs from run to run is fixed here and in `frozen`. Times in the operator's messages, and what is
random in names, are replaced by texts of the same length.
"""

import fcntl
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyte

from cluster.journeys.frozen import FOLDER
from cluster.world import is_readable
from forks import Fork, fork

LINES = 120
"""More than any command prints, so that nothing scrolls off the screen."""

SECONDS = 300.0
"""Longest time in which a command prints nothing."""

_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
"""The letters and digits of which Kubernetes makes names."""

_REPLICA_SET = re.compile(rf"(?<=-){_SAFE}{{8,10}}(-{_SAFE}{{5}})?\b")
"""What a Deployment adds to the names of its ReplicaSets, and a ReplicaSet to those of its pods."""

_ENDPOINT_SLICE = re.compile(rf"(?<=EndpointSlice )(\S+-){_SAFE}{{5}}\b")
_NODE = re.compile(r"\bgpu-[0-3]\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class Screen:
    """How a command has ended, and what it leaves on the screen."""

    code: int
    text: str
    is_cursor_shown: bool


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal of `columns`, in a folder, with these environment variables."""

    columns: int
    folder: Path
    variables: Mapping[str, str]

    def run(self, *words: str) -> Screen:
        """The screen after `dynamoctl` with these words."""
        return self._run(words, "")

    def interrupted(self, seen: str, *words: str) -> Screen:
        """The screen after it was interrupted, as by Ctrl-C, once it showed `seen`."""
        return self._run(words, seen)

    def _run(self, words: tuple[str, ...], seen: str) -> Screen:
        own, others = pty.openpty()
        fcntl.ioctl(others, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, self.columns, 0, 0))
        screen = pyte.Screen(self.columns, LINES)
        stream = pyte.ByteStream(screen)
        variables = {"TERM": "xterm-256color", FOLDER: str(self.folder), **self.variables}
        process = fork("cluster.journeys.frozen:run", words, others, others, variables)
        os.close(others)
        while printed := _read(own, process):
            stream.feed(printed)
            if seen and seen in "".join(screen.display):
                seen = ""
                process.send_signal(signal.SIGINT)
        os.close(own)
        lines = "\n".join(line.rstrip() for line in screen.display).rstrip()
        return Screen(process.wait(SECONDS), _normalized(lines), not screen.cursor.hidden)


def _normalized(text: str) -> str:
    """The text without what is random, and with one time, in as many columns."""
    text = _REPLICA_SET.sub(lambda found: re.sub(r"[^-]", "*", found[0]), _NODE.sub("gpu-*", text))
    return _TIME.sub("2026-11-23T12:00:00Z", _ENDPOINT_SLICE.sub(r"\1*****", text))


def _read(terminal: int, process: Fork) -> bytes:
    """The next bytes; none when no process has the terminal open, which Linux reports as an error."""
    if not is_readable(terminal, SECONDS):
        process.send_signal(signal.SIGKILL)
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
