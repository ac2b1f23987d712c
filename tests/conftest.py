"""Settings of every test."""

from hypothesis import settings

# The same examples on every machine and every run; no time limit on one example, since cores are shared.
settings.register_profile("dse", derandomize=True, deadline=None)
settings.load_profile("dse")
