"""Helm for the users who install a chart. A fixture, because the first build takes longer than a test may."""

from cluster.charts.conftest import offline

__all__ = ["offline"]
