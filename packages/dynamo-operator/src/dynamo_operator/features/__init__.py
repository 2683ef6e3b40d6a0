"""What a graph may use, a module or folder for each.

`decision.py` has the types `Feature` and `Provider`, and the decision that they add to. The list `FEATURES`
(`graph/decide.py`) has a value for each: history, rollouts, scaling adapters, restart, suspension, picker,
disruption budgets, exposure; discovery, PVCs and shared accounts are in `graph/decide.py` itself. Grove is
a `Provider` (`grove/provider.py`). SSH keys have a controller of their own and are read by `graph/read.py`.
"""
