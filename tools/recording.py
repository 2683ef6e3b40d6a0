"""The animation docs/recording.svg: the first five minutes with graphs at a terminal.

The screens are those of `tests/cluster/journeys/screens`, which a test compares with a terminal. The
animation needs no script. It shows one page if the reader prefers reduced motion or the program draws no
animations, and pauses under the pointer.
"""

import html
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "docs/recording.svg"
SCREENS = ROOT / "tests/cluster/journeys/screens/80.txt"
SHOWN = (
    "apply -f chat.yaml",
    "get",
    "status chat",
    "tree chat",
    "lint invalid.json",
    "why gpus",
    "scale chat/Decode --replicas 3",
    "rollout history chat",
    "rollout undo chat",
)
"""Arguments of `dynamoctl`, in the order of the screens."""

STILL = "why gpus"
"""A command on the page that is shown without animation."""

COLUMNS, ROWS = 80, 27
WIDE, HIGH = 8.4, 18
"""Pixels of a letter and of a line at a font size of 14 pixels."""

MARGIN = 16
TYPED = 0.05
"""Seconds between two letters that are typed."""

READ, ANSWERED = 0.22, 1.2
"""Seconds to read a line, and additional seconds for each answer."""

BACKGROUND = "#10151c"
COLORS = {"text": "#d5dbe3", "prompt": "#76d275", "good": "#76d275", "bad": "#ff8a80", "dim": "#9aa7b5"}
"""All have a contrast of at least 4.5 to the background."""

_EXIT_CODE = re.compile(r"\n\(exit code \d+\)\s*\Z")
_STARS = re.compile(r"\*+")
_MARKED = re.compile(r"(?P<good>✔|\bTrue\b)|(?P<bad>✘|\b(?:False|error)\b)|(?P<dim>[├└│─]+)")


@dataclass(frozen=True, slots=True)
class Answer:
    """A command, its output, its row on the page, and when it is typed, printed and cleared (seconds)."""

    words: str
    lines: list[str]
    row: int
    typed: float
    printed: float
    cleared: float

    @property
    def command(self) -> str:
        return f"dynamoctl {self.words}"


def outputs(screens: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of the recording and the lines that each prints.

    Raises:
        ValueError: the screens lack a command, or have another order.
    """
    for words in SHOWN:
        _, prompt, screens = f"\n{screens}".partition(f"\n$ dynamoctl {words}\n")
        if not prompt:
            raise ValueError(f"tests/cluster/journeys/screens: no screen of dynamoctl {words}")
        printed = re.split(r"\n(?=\$ dynamoctl )", screens)[0]
        yield words, _named(_EXIT_CODE.sub("", printed)).rstrip().splitlines()


def timed(screens: str) -> list[Answer]:
    """The commands with rows and times. One that does not fit on the page starts a new one."""
    pages: list[list[tuple[str, list[str]]]] = [[]]
    rows = 0
    for words, lines in outputs(screens):
        if rows + len(lines) + 1 > ROWS:
            pages.append([])
            rows = 0
        pages[-1].append((words, lines))
        rows += len(lines) + 2
    answers: list[Answer] = []
    clock = 0.5
    for page in pages:
        starts: list[float] = []
        for words, lines in page:
            starts.append(clock)
            clock += TYPED * len(f"dynamoctl {words}") + ANSWERED + READ * len(lines)
        row = 0
        for (words, lines), typed in zip(page, starts, strict=True):
            printed = typed + TYPED * len(f"dynamoctl {words}")
            answers.append(Answer(words, lines, row, typed, printed, clock))
            row += len(lines) + 2
    return answers


def drawing(screens: str) -> str:
    """The animation of these screens, as an SVG."""
    answers = timed(screens)
    whole = answers[-1].cleared
    (still,) = (answer.cleared for answer in answers if answer.words == STILL)
    width = round(COLUMNS * WIDE + 2 * MARGIN)
    height = ROWS * HIGH + 2 * MARGIN
    title = "The first five minutes with a graph at a terminal"
    commands = ", ".join(f"dynamoctl {answer.words}" for answer in answers)
    font = "14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
    size = f'width="{width}" height="{height}"'
    styles = [
        f"text{{font:{font};white-space:pre;fill:{COLORS['text']}}}",
        *(f".{name}{{fill:{color}}}" for name, color in COLORS.items() if name != "text"),
        "g{visibility:hidden}g.still{visibility:visible}",
    ]
    moved = "".join(_keyframes(number, answer, whole) for number, answer in enumerate(answers))
    styles.append(f"@media (prefers-reduced-motion:no-preference){{{moved}}}")
    styles.append("svg:hover *{animation-play-state:paused!important}")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img">',
            f"<title>{title}</title>",
            f"<desc>{html.escape(commands)}</desc>",
            f"<style>{''.join(styles)}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            *(_drawn(number, answer, answer.cleared == still) for number, answer in enumerate(answers)),
            "</svg>\n",
        ]
    )


def _keyframes(number: int, answer: Answer, whole: float) -> str:
    """The styles of the animation of one command and its output."""

    def at(seconds: float) -> str:
        return f"{100 * seconds / whole:.3f}%"

    def visible(name: str, begin: float, end: float) -> str:
        shown = f"{at(begin)}{{visibility:visible}}{at(end)}{{visibility:hidden}}"
        return (
            f"@keyframes {name}{number}{{0%{{visibility:hidden}}{shown}}}"
            f"#{name}{number}{{animation:{name}{number} {whole:.2f}s step-end infinite}}"
        )

    letters = len(answer.command)
    return (
        visible("c", answer.typed, answer.cleared)
        + visible("a", answer.printed, answer.cleared)
        + visible("o", answer.typed, answer.printed)
        + f"@keyframes m{number}{{0%,{at(answer.typed)}{{transform:none;"
        f"animation-timing-function:steps({letters})}}"
        f"{at(answer.printed)},to{{transform:translateX({letters * WIDE:.1f}px)}}}}"
        f"#o{number}{{animation:o{number} {whole:.2f}s step-end infinite,m{number} {whole:.2f}s infinite}}"
    )


def _drawn(number: int, answer: Answer, is_still: bool) -> str:
    """A command under a cover that moves aside while it is typed, and its output."""
    still = ' class="still"' if is_still else ""
    top = MARGIN + answer.row * HIGH
    left = MARGIN + 2 * WIDE
    command = f'<tspan class="prompt">$</tspan> {html.escape(answer.command)}'
    cover = (
        f'<g id="o{number}"><rect x="{left:.1f}" y="{top}" width="{COLUMNS * WIDE:.0f}" height="{HIGH}"'
        f' fill="{BACKGROUND}"/><rect x="{left:.1f}" y="{top + 2}" width="{WIDE}" height="14"'
        f' fill="{COLORS["text"]}"/></g>'
    )
    lines = [_text(top + HIGH * line, _marked(text)) for line, text in enumerate(answer.lines, 1) if text]
    return "\n".join(
        [
            f'<g id="c{number}"{still}>{_text(top, command)}{cover}</g>',
            f'<g id="a{number}"{still}>',
            *lines,
            "</g>",
        ]
    )


def _text(top: float, content: str) -> str:
    return f'<text x="{MARGIN}" y="{top + 14:.0f}">{content}</text>'


def _marked(line: str) -> str:
    """A line with colors, which add nothing to its marks and words."""
    return _MARKED.sub(
        lambda match: f'<tspan class="{match.lastgroup}">{match[0]}</tspan>', html.escape(line, quote=False)
    )


def _named(text: str) -> str:
    """Replace the stars of random names in the screens by letters."""
    letters = itertools.cycle("7c9d8b6f5x2k4m")
    return _STARS.sub(lambda match: "".join(itertools.islice(letters, len(match[0]))), text)
