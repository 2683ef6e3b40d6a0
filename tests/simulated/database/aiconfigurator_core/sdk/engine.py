"""Answers of AI Configurator's database for a few models, where its 500 MB are not installed.

In `PYTHONPATH` this folder takes the place of the real package. `recorded.csv` has times of release
0.12.0 on a grid of answers (prompts for a prefill) and tokens. Between them this one interpolates, and
`make kernels` checks that the real one answers what is recorded. What is not recorded has no table.
"""

import csv
import json
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

Table: TypeAlias = dict[int, dict[int, float]]
"""Milliseconds by count and tokens."""
RECORD = Path(__file__).with_name("recorded.csv")


def compile_engine(
    model_path: str,
    system: str,
    backend: str,
    *,
    tp_size: int,
    attention_dp_size: int = 1,
    **_ignored: int | str,
) -> bytes:
    """What identifies the engine in the record."""
    config = json.loads((Path(model_path) / "config.json").read_text(encoding="utf-8"))
    layers, width = config["num_hidden_layers"], config["hidden_size"]
    key = (f"{layers}x{width}", system, backend, f"{tp_size}", f"{attention_dp_size}")
    return json.dumps(key).encode()


class EngineHandle:
    """One recorded engine.

    Raises:
        LookupError: it is not in the record.
    """

    def __init__(self, spec_bytes: bytes) -> None:
        key = tuple(json.loads(spec_bytes))
        self._tables: dict[str, Table] = {}
        with RECORD.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if key == tuple(row[name] for name in ("model", "system", "backend", "tp", "dp")):
                    table = self._tables.setdefault(row["kind"], {})
                    times = table.setdefault(int(row["count"]), {})
                    times[int(row["tokens"])] = float(row["ms"])
        if not self._tables:
            raise LookupError(f"no recorded engine {key}")

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        """Milliseconds of one prefill."""
        return _times(self._tables["prefill"][bs], isl)

    def decode_step_latency(self, gen_tokens: int, isl: int, _osl: int) -> float:
        """Milliseconds of one step. The profiler always asks for its first token."""
        table = self._tables["step"]
        by_count = {count: _times(times, isl) for count, times in table.items()}
        return _times(by_count, gen_tokens)


def _times(known: dict[int, float], at: int) -> float:
    """The value there, on the line through its two neighbours."""
    places: Sequence[int] = sorted(known)
    right = min(max(bisect_left(places, at), 1), len(places) - 1)
    one, other = places[right - 1], places[right]
    return known[one] + (known[other] - known[one]) * (at - one) / (other - one)
