"""`make bench`: what the operator costs, beside what the API server alone would cost.

python -m bench [--graphs 20,100] [--rounds 3,1] [--only scale,models] [--write]
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

import msgspec

from bench import foreign, legacy, memory, micro, models, page, reviews, soak
from bench.plane import plane
from bench.run import Figures, measured, measured_bare, measured_floor

GRAPHS = "20,100,300,1000"
PARTS = ("micro", "memory", "reviews", "models", "foreign", "legacy", "scale")

_WITHOUT_OPTIONS = {
    "micro": micro.main,
    "memory": memory.main,
    "reviews": reviews.main,
    "models": models.main,
    "legacy": legacy.main,
}


def main() -> None:
    """Measure and print; with `--write`, put the figures onto the page as well."""
    options = _options(sys.argv[1:])
    for name, part in _WITHOUT_OPTIONS.items():
        if name in options.only:
            part()
    if "foreign" in options.only:
        foreign.main(options.foreign)
    if "soak" in options.only:
        soak.main(options.minutes, options.rate)
    if "scale" in options.only:
        runs = zip(options.graphs, cycle(options.rounds), strict=False)
        results = [scale(graphs, rounds) for graphs, rounds in runs]
        print(page.table(results))
        if options.write:
            page.rewrite(results, sys.argv[1:])


def scale(graphs: int, rounds: int) -> Figures:
    """The medians of several rounds; each is a run of the operator, then one of the floor."""
    runs = []
    for number in range(rounds):
        with plane() as fresh:
            figures, template = asyncio.run(measured(fresh, graphs))
        with plane() as fresh:
            asyncio.run(measured_floor(fresh, figures, template))
        if graphs in page.REFERENCE_BARE_SECONDS:
            with plane() as fresh:
                asyncio.run(measured_bare(fresh, figures))
        runs.append(figures)
        text = msgspec.json.format(msgspec.json.encode(figures)).decode()
        print(f"{graphs} graphs, round {number + 1} of {rounds}:\n{text}", flush=True)
    return _medians(runs)


def _medians(runs: Sequence[Figures]) -> Figures:
    """The median of each figure; counts by kind are those of the last round."""
    result = msgspec.structs.replace(runs[-1], rounds=len(runs))
    for name in Figures.__struct_fields__:
        values = [getattr(figures, name) for figures in runs]
        if name != "rounds" and isinstance(values[0], int | float):
            setattr(result, name, median(values))
    return result


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--graphs", default=GRAPHS, type=_numbers, help="with commas")
    rounds = "runs of which the medians are taken: for each number of graphs in turn, with commas"
    parser.add_argument("--rounds", type=_numbers, default=[3], help=rounds)
    parser.add_argument("--only", default=",".join(PARTS), type=lambda text: text.split(","))
    others = f"objects of others, of each of three kinds (default {foreign.COUNT})"
    parser.add_argument("--foreign", type=int, default=foreign.COUNT, help=others)
    parser.add_argument("--minutes", type=float, default=60.0, help="of `--only soak`")
    rate = "graphs created, scaled and deleted per minute by `--only soak` (default %(default)s)"
    parser.add_argument("--rate", type=float, default=soak.RATE, help=rate)
    parser.add_argument("--write", action="store_true", help=f"rewrite {page.PAGE.name} and plot")
    return parser.parse_args(arguments)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    assert Path("bench").is_dir(), "to be run in the root of the repository"
    main()
