"""Workloads of an earlier operator, taken over without a restart of their pods."""
