"""The inference frameworks: what each needs in its container beyond what every worker has."""
