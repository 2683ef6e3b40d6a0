"""What a graph may use, a module or folder for each.

`decision.py` has the types `Feature` and `Provider`, and the decision that they add to. The list `FEATURES`
(`graph/decide.py`) has a value for each: history, rollouts, scaling adapters, restart, suspension, picker,
disruption budgets, exposure, and in `graph/decide.py` itself discovery, PVCs, shared accounts, SSH keys and
take-over. Grove is a `Provider` (`grove/provider.py`). SSH keys are made by a controller of their own.
"""
