"""Whether a measured batch can have been in memory as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from dse.spaces.catalog import catalog

from .formats import Stored, known_formats
from .model import bytes_of, parameters_of
from .row import Run

__all__ = ["misfit"]


def misfit(model: Mapping[str, float], run: Run, hardware: str, batching: str) -> str:
    """Why weights and the cache of all sequences cannot have been in the memory of the GPUs; "" where they can.

    Sequences of a static batch all reach their end; those of a ``persistent`` one are replaced when they do, and have half
    their output on average.
    """
    memory = catalog.hardware(hardware).memory
    if not memory:
        return ""
    stored, parameters, job = run.plan["stored"], parameters_of(model), run.job
    assert isinstance(stored, Stored)
    weights = parameters * stored.bits_of(parameters) / 8
    share = 0.5 if "persistent" in batching.casefold() else 1.0
    value = known_formats()[str(run.plan["kv"])] / 8
    cache = job["batch"] * bytes_of(model, job["past"] + job["prompt"] + share * job["output"], value)
    room = memory * job["n_gpus"]
    if weights > room:
        return "the weights do not fit the memory of the GPUs"
    if weights + cache > room:
        return "the batch's cache does not fit the memory: sequences waited for each other"
    return ""
