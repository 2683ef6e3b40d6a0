"""The orchestrators: which objects run a component's pods."""
