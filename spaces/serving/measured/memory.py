"""Whether a measured batch can have been in memory as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from dse.spaces.catalog import catalog

from .formats import Stored, known_formats
from .model import bytes_of, parameters_of
from .row import Run

__all__ = ["waits"]


def waits(model: Mapping[str, float], run: Run, hardware: str, batching: str) -> bool:
    """Whether weights and the cache of all sequences alone exceed the memory of the GPUs.

    Sequences of a static batch all reach their end; those of a ``persistent`` one are replaced when they do, and have half
    their output on average.
    """
    memory = catalog.hardware(hardware).memory
    if not memory:
        return False
    stored, parameters, job = run.plan["stored"], parameters_of(model), run.job
    assert isinstance(stored, Stored)
    share = 0.5 if "persistent" in batching.casefold() else 1.0
    value = known_formats()[str(run.plan["kv"])] / 8
    cache = job["batch"] * bytes_of(model, job["past"] + job["prompt"] + share * job["output"], value)
    whole: bool = parameters * stored.bits_of(parameters) / 8 + cache > memory * job["n_gpus"]
    return whole
