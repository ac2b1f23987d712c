"""Inference of large language models: the space, its cost model and its measurements."""
