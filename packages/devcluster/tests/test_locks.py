import subprocess
import sys
import threading
from pathlib import Path

from devcluster.locks import held

HOLDER = """
import sys, time
from pathlib import Path
from devcluster.locks import held
with held(Path(sys.argv[1]), waiting=lambda: None):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_waits_says_so_once_and_goes_on_when_the_first_is_done(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "lock"
    order: list[str] = []
    second_waits = threading.Event()

    def says_so() -> None:
        order.append("waits")
        second_waits.set()

    def second() -> None:
        with held(lock, waiting=says_so):
            order.append("second")

    with held(lock, waiting=lambda: order.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        assert second_waits.wait(10)
        order.append("first")
    thread.join(10)
    assert ["waits", "first", "second"] == order


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    waited: list[bool] = []
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        holder.kill()
        holder.wait()
        with held(lock, waiting=lambda: waited.append(True)):
            pass
    assert [] == waited
