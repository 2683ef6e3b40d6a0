"""How many examples a property gets: some hundred, or ten thousand with the profile `properties`."""

from hypothesis import HealthCheck, settings

QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
settings.register_profile("change", max_examples=200, deadline=None, suppress_health_check=QUIET)
settings.register_profile("properties", max_examples=10_000, deadline=None, suppress_health_check=QUIET)
settings.load_profile("change")
