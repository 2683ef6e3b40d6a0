import io

from rich.console import Console
from rich.progress import Progress as RichProgress

from devcluster.progress import Bars, Lines


def test_lines_tell_each_step_but_not_each_advance() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.step("first")
    for done in range(100):
        lines.advance(done, 100)
    lines.step("second")
    assert "first\nsecond\n" == stream.getvalue()


def test_a_bar_is_full_when_the_next_step_starts() -> None:
    with RichProgress(console=Console(file=io.StringIO())) as shown:
        bars = Bars(shown)
        bars.step("first")
        bars.advance(3, 7)
        bars.step("second")
        assert [True, False] == [task.finished for task in shown.tasks]
