"""Metrics that are read where they are counted, at each scrape, so that counting costs nothing.

Several counters may have one label: there are three watches of Secrets. Their numbers are added; a later
registration must not replace an earlier one.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Reading: TypeAlias = Callable[[], float]


class CallbackMetrics(Collector):
    """One metric by one label, whose values are the sums of readings."""

    def __init__(
        self, family: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, text: str
    ) -> None:
        self._family = family
        self._name = name
        self._text = text
        self._label = "resource_type"
        self._readings: dict[str, list[Reading]] = {}

    def labelled(self, label: str) -> "CallbackMetrics":
        """This metric, by another label than `resource_type`."""
        self._label = label
        return self

    def add(self, value: str, reading: Reading) -> None:
        """Add a reading to those of that label's value."""
        self._readings.setdefault(value, []).append(reading)

    def collect(self) -> Iterator[Metric]:
        """The sums, now."""
        found = self._family(self._name, self._text, labels=(self._label,))
        for value, readings in self._readings.items():
            found.add_metric((value,), sum(each() for each in readings))
        yield found
