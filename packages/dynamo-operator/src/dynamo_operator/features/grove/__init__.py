"""Workloads as PodCliqueSets of Grove."""
