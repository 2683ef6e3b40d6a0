"""Local control planes: the playground and the demo."""
