"""Quantization of large language models: published quality, quantizers that run here, and the space of both."""
