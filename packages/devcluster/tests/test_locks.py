import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

from devcluster.layout import held
from devcluster.progress import Lines, Silent

HOLDER = """
import sys, time
from pathlib import Path
from devcluster.layout import held
from devcluster.progress import Silent
with held(Path(sys.argv[1]), Silent(), "nothing"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_waits_says_so_once_and_goes_on_when_the_first_is_done(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "lock"
    order: list[str] = []
    second_waits = threading.Event()

    class Waiting(Silent):
        def step(self, text: str) -> None:
            order.append(text)
            second_waits.set()

    def second() -> None:
        with held(lock, Waiting(), "the first"):
            order.append("second")

    with held(lock, Waiting(), "never"):
        thread = threading.Thread(target=second)
        thread.start()
        assert second_waits.wait(10)
        order.append("first")
    thread.join(10)
    assert ["waiting for the first", "first", "second"] == order


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    steps = StringIO()
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        holder.kill()
        holder.wait()
        with held(lock, Lines(steps), "the killed one"):
            pass
    assert "" == steps.getvalue()
