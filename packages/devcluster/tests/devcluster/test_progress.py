import io

from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import SpinnerColumn

from devcluster.progress import Lines, Spinners


def test_lines_show_each_step_but_not_each_advance() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.step("first")
    for done in range(100):
        lines.advance(done, 100)
    lines.step("second")
    assert "first\nsecond\n" == stream.getvalue()


def test_a_step_is_checked_when_the_next_one_starts_and_at_the_end() -> None:
    stream = io.StringIO()
    columns = (SpinnerColumn(finished_text="✔"), "{task.description}", "{task.fields[count]}")
    with RichProgress(*columns, console=Console(file=stream)) as shown:
        spinners = Spinners(shown)
        spinners.step("first")
        spinners.advance(3, 7)
        assert "3 of 7" == shown.tasks[0].fields["count"]
        spinners.step("second")
        assert [True, False] == [task.finished for task in shown.tasks]
        spinners.finish()
    assert ["✔ first", "✔ second"] == [line.strip() for line in stream.getvalue().splitlines()]
