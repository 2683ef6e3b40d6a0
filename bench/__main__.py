"""Measure what the operator costs: time, CPU, memory and API requests."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from statistics import median

import msgspec

from bench import foreign, legacy, memory, micro, models, page, reviews, soak, versions
from bench.plane import plane
from bench.scale import Figures, measured, measured_bare, measured_floor

SCENARIOS = {
    "micro": "CPU time of single steps: decode, validate, render, compare, queue",
    "memory": "bytes held for each pod and each graph",
    "reviews": "CPU and latency of admission reviews",
    "models": "requests, memory and CPU of a LoRA on 1,000 pods",
    "foreign": "CPU and memory that other people's objects cost",
    "legacy": "a service of a DynamoDeployment, beside one of a graph",
    "scale": "graphs from creation to ready, changes, idle, a restart; beside the floor",
    "versions": "what v1beta1 costs: graphs stored in it, lists through conversion",
    "soak": "growth of memory while graphs are created and deleted (not in the default)",
}
DEFAULT = tuple(name for name in SCENARIOS if name != "soak")


def main() -> None:
    """Measure and print; with `--write`, update the page as well."""
    options = _options(sys.argv[1:])
    for name in options.only:
        match name:
            case "micro":
                micro.main()
            case "memory":
                memory.main()
            case "reviews":
                reviews.main()
            case "models":
                models.main()
            case "foreign":
                foreign.main(options.foreign)
            case "legacy":
                legacy.main()
            case "versions":
                versions.main(options.graphs[:1], options.rounds[0])
            case "scale":
                runs = zip(options.graphs, cycle(options.rounds), strict=False)
                results = [scale(graphs, rounds) for graphs, rounds in runs]
                print(page.table(results))
                if options.write:
                    page.rewrite(results, sys.argv[1:])
            case _:
                soak.main(options.minutes, options.rate)


def scale(graphs: int, rounds: int) -> Figures:
    """The medians of several rounds; each runs the operator, then the floor."""
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
    lines = [f"  {name:<9} {text}" for name, text in SCENARIOS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog="\n".join(("scenarios:", *lines)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", type=_scenarios, default=DEFAULT, metavar="SCENARIO[,…]", help=_ONLY)
    parser.add_argument("--graphs", type=_numbers, default=_numbers("20,100,300,1000"), help=_GRAPHS)
    parser.add_argument("--rounds", type=_numbers, default=[3], help=_ROUNDS)
    parser.add_argument("--write", action="store_true", help=f"scale: rewrite {page.PAGE} and its plot")
    parser.add_argument("--foreign", type=int, default=foreign.COUNT, help=_FOREIGN)
    parser.add_argument("--minutes", type=float, default=60.0, help="soak: minutes (default %(default)g)")
    parser.add_argument("--rate", type=float, default=soak.RATE, help=_RATE)
    return parser.parse_args(arguments)


_ONLY = "scenarios to run (default all but soak)"
_GRAPHS = "scale: numbers of graphs, separated by commas (default 20,100,300,1000)"
_ROUNDS = "scale: rounds of which to take medians, for each number of graphs in turn (default 3)"
_FOREIGN = "foreign: objects of each of three kinds (default %(default)s)"
_RATE = "soak: graphs per minute, whatever the load of the machine (default %(default)g)"


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _scenarios(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in SCENARIOS]:
        raise argparse.ArgumentTypeError(f"unknown scenario {unknown[0]!r} (expected {', '.join(SCENARIOS)})")
    return names


if __name__ == "__main__":
    if not Path("bench").is_dir():
        sys.exit("run it in the root of the repository")
    main()
