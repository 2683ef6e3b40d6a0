"""How the operator is watched: logs, health, metrics."""
