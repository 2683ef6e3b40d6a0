"""A signal stops the operator in order, and in time."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

SERVING = """\
import asyncio, re, sys, time
from functools import partial
from dynamo_operator.process.main import end_within, serve
from dynamo_operator.process import observability as logging
from dynamo_operator.settings import Settings

logging.configure(Settings().logging, sys.stderr)

async def operator(settings, stop):
    print("running", flush=True)
    await stop.wait()
    print("stopping", flush=True)
    if "stuck" in sys.argv:
        await asyncio.Event().wait()
    if "thread" in sys.argv:
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
    if "pattern" in sys.argv:
        re.match("(a+)+b", "a" * 60)

asyncio.run(serve(Settings(), operator, on_stop=partial(end_within, float(sys.argv[-1]))))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_in_order(number: signal.Signals) -> None:
    with _serving() as (program, output):
        program.send_signal(number)
        assert "stopping\n" == output.read()
    assert 0 == program.returncode


def test_a_second_signal_ends_at_once() -> None:
    with _serving("stuck") as (program, output):
        program.terminate()
        assert "stopping\n" == output.readline()
        program.terminate()
    assert -signal.SIGTERM == program.returncode


@pytest.mark.parametrize("what", ["stuck", "thread", "pattern"])
def test_a_signal_ends_whatever_is_under_way(what: str) -> None:
    with _serving(what, "0.5") as (program, output):
        program.terminate()
        assert "stopping\n" == output.readline()
        assert program.wait(20) in (1, -signal.SIGALRM)


@contextmanager
def _serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    with (
        subprocess.Popen(  # noqa: S603  the text above
            [sys.executable, "-c", SERVING, *arguments, *(() if arguments[1:] else ("600",))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as program
    ):
        assert program.stdout
        try:
            assert "running\n" == program.stdout.readline()
            yield program, program.stdout
        except BaseException:
            program.kill()
            raise
