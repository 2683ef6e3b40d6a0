"""Fail on banned phrases, with file, line and what to write instead.

`tools/words.toml` lists the phrases. `tools/words-baseline.txt` has the counts of existing ones, by phrase
and by page or area, which may only fall: `--tighten` lowers them, and removes the file when none are left.
`--left` lists the existing ones by file.
"""

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PHRASES = Path(__file__).with_name("words.toml")
BASELINE = Path(__file__).with_name("words-baseline.txt")
# recordings of the reference operator, rendered files, and the tests of this check
NOT_OURS = re.compile(
    r"^(tests/conformance/cases|tests/golden/.*\.yaml|examples/reference)|(^|/)test_words\.py$"
)
TEXT = (".py", ".md", "Makefile", "Containerfile")
TEXT_OF_CHARTS = (".yaml", ".tpl", ".txt", ".json", ".md")
TEXT_TOKENS = (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1))
CODE_BLOCK = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"``[^`]*``|`[^`]*`|\]\([^)\s]*\)")  # code, and targets of links
HELM_ACTION = re.compile(r"\{\{-?\s*(?!/\*)(?![^{}]*\bfail ).*?\}\}", re.DOTALL)
LOOK_BEHIND = re.compile(r"\(\?<![^)]*\)")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class Phrase(NamedTuple):
    """One entry of the list."""

    name: str
    pattern: re.Pattern[str]
    write: str


class Hit(NamedTuple):
    """A phrase at a line of a file; `area` is its row in the baseline."""

    path: str
    line: int
    phrase: Phrase
    words: str

    @property
    def area(self) -> str:
        """The page, or for other files charts, tests or code, which do not change when a file moves."""
        if self.path.startswith("charts/"):
            return "charts"
        if self.path.endswith(".md"):
            return self.path
        return "tests" if "tests/" in self.path else "code"

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.words}": write {self.phrase.write}'


def read_phrases() -> list[Phrase]:
    """The phrases in the order of the list."""
    entries = tomllib.loads(PHRASES.read_text(encoding="utf-8"))
    return [
        Phrase(name, compiled(entry["pattern"]), entry["write"]) for name, entry in entries.items()
    ]


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression, in which a space is any white space, but one character in a look-behind."""
    spaced = LOOK_BEHIND.sub(lambda match: match[0].replace(" ", r"\s"), pattern)
    return re.compile(spaced.replace(" ", r"\s+"), re.IGNORECASE)


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with every match replaced by spaces, on the same lines."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def passages(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Each piece of prose with the number of its first line."""
    if not path.endswith(".py"):
        prose = blanked(CODE_BLOCK, text) if path.endswith(".md") else blanked(HELM_ACTION, text)
        yield 1, blanked(QUOTED, prose)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in TEXT_TOKENS or " " not in token.string:
            continue  # a string without a space is a name, not a message
        yield token.start[0], blanked(PLACEHOLDER, blanked(QUOTED, token.string))


def hits(path: str, text: str, phrases: list[Phrase]) -> list[Hit]:
    """The hits in one file, by line."""
    hits_of_file = [
        Hit(path, first + passage.count("\n", 0, match.start()), phrase, " ".join(match[0].split()))
        for first, passage in passages(path, text)
        for phrase in phrases
        for match in phrase.pattern.finditer(passage)
    ]
    return sorted(hits_of_file, key=lambda hit: (hit.line, hit.words))


def git(*arguments: str) -> str:
    """Run git and return what it prints; empty without git or a repository."""
    try:
        answer = subprocess.run(  # noqa: S603  fixed arguments
            ["git", *arguments],  # noqa: S607  the git that developers use
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout


def files() -> list[str]:
    """Tracked and new files with our prose; without git, all files in the folder."""
    names = git("ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    if not names:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    return [
        name
        for name in sorted(set(names))
        if (name.endswith(TEXT_OF_CHARTS if name.startswith("charts/") else TEXT))
        and not name.startswith(".")
        and not NOT_OURS.search(name)
        and (ROOT / name).is_file()
    ]


def baseline() -> Counter[tuple[str, str]]:
    """The allowed counts of phrases by area."""
    if not BASELINE.exists():
        return Counter()
    rows = [line.split() for line in BASELINE.read_text(encoding="utf-8").splitlines()]
    return Counter({(phrase, area): int(count) for phrase, area, count in rows})


def write_baseline(counts: Counter[tuple[str, str]]) -> None:
    """Write the counts, or remove the file if there are none."""
    rows = [f"{phrase} {area} {count}\n" for (phrase, area), count in sorted(counts.items())]
    if rows:
        BASELINE.write_text("".join(rows), encoding="utf-8")
    else:
        BASELINE.unlink(missing_ok=True)


def added_since_baseline() -> set[tuple[str, int]]:
    """Lines added since the last commit of the baseline, as file and line number."""
    commit = git("log", "-1", "--format=%H", "--", str(BASELINE)).strip()
    lines: set[tuple[str, int]] = set()
    path = ""
    for line in git("diff", "--unified=0", "--no-renames", commit).splitlines() if commit else ():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif head := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first = int(head[1])
            lines |= {(path, first + offset) for offset in range(int(head[2] or 1))}
    return lines


def too_many(all_hits: list[Hit], allowed: Counter[tuple[str, str]]) -> list[Hit]:
    """The hits to report: the newest ones of each phrase that exceeds its allowed count in an area."""
    counts = Counter((hit.phrase.name, hit.area) for hit in all_hits)
    over = {key for key, count in counts.items() if count > allowed[key]}
    candidates = [hit for hit in all_hits if (hit.phrase.name, hit.area) in over]
    if not any(allowed[key] for key in over):
        return candidates
    new_lines = added_since_baseline()
    newest = [hit for hit in candidates if (hit.path, hit.line) in new_lines]
    covered = {(hit.phrase.name, hit.area) for hit in newest}
    return newest + [hit for hit in candidates if (hit.phrase.name, hit.area) not in covered]


def main(arguments: list[str]) -> int:
    """Print the hits; return 1 if there are any."""
    phrases = read_phrases()
    all_hits = [
        hit
        for name in files()
        for hit in hits(name, (ROOT / name).read_text(encoding="utf-8"), phrases)
    ]
    allowed = baseline()
    counts = Counter((hit.phrase.name, hit.area) for hit in all_hits)
    if "--left" in arguments:
        for path, count in Counter(hit.path for hit in all_hits).most_common():
            print(f"{count:5} {path}")
        print(f"{len(all_hits):5} in all")
        return 0
    if "--tighten" in arguments:
        write_baseline(counts & allowed)
        return 0
    wrong = too_many(all_hits, allowed)
    for hit in wrong:
        print(hit)
    for phrase, area in sorted({(hit.phrase.name, hit.area) for hit in wrong}):
        key = (phrase, area)
        print(f"{phrase} in {area}: {counts[key]}, the baseline allows {allowed[key]}")
    lower = sum((allowed - counts).values())
    if lower and not wrong:
        print(f"words: {lower} phrases fewer than the baseline allows; `make fmt` lowers it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
