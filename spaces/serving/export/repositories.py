"""Where published checkpoints of the catalogue's models are, by their names on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

__all__ = ["checkpoint"]

_PLACES = {
    "bloom-176b": "bigscience/bloom",
    "codellama-34b": "codellama/CodeLlama-34b-Instruct-hf",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "falcon-7b": "tiiuae/falcon-7b-instruct",
    "falcon-40b": "tiiuae/falcon-40b-instruct",
    "gemma-3-4b": "google/gemma-3-4b-it",
    "glm-4.7-flash": "zai-org/GLM-4.7-Flash",
    "gpt-j-6b": "EleutherAI/gpt-j-6b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "internlm-20b": "internlm/internlm-chat-20b",
    "internlm2-7b": "internlm/internlm2-chat-7b",
    "llama-7b": "huggyllama/llama-7b",
    "llama-13b": "huggyllama/llama-13b",
    "llama-30b": "huggyllama/llama-30b",
    "llama-65b": "huggyllama/llama-65b",
    "llama-2-7b": "meta-llama/Llama-2-7b-chat-hf",
    "llama-2-13b": "meta-llama/Llama-2-13b-chat-hf",
    "llama-2-70b": "meta-llama/Llama-2-70b-chat-hf",
    "llama-3-8b": "meta-llama/Meta-Llama-3-8B-Instruct",
    "llama-3-70b": "meta-llama/Meta-Llama-3-70B-Instruct",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B-Instruct",
    "llama-3.1-70b": "meta-llama/Llama-3.1-70B-Instruct",
    "llama-3.1-405b": "meta-llama/Llama-3.1-405B-Instruct",
    "llama-3.2-1b": "meta-llama/Llama-3.2-1B-Instruct",
    "llama-3.2-3b": "meta-llama/Llama-3.2-3B-Instruct",
    "mistral-7b": "mistralai/Mistral-7B-Instruct-v0.1",
    "mistral-large-2407": "mistralai/Mistral-Large-Instruct-2407",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mixtral-8x22b": "mistralai/Mixtral-8x22B-Instruct-v0.1",
    "openllama-3b": "openlm-research/open_llama_3b",
    "opt-13b": "facebook/opt-13b",
    "phi-4": "microsoft/phi-4",
    "qwen1.5-7b": "Qwen/Qwen1.5-7B-Chat",
    "qwen2-57b-a14b": "Qwen/Qwen2-57B-A14B-Instruct",
    "qwen3-coder-30b-a3b": "Qwen/Qwen3-Coder-30B-A3B-Instruct",
    "tinyllama-1.1b": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
}


def checkpoint(model: str) -> str:
    """What an engine is told to load: a name on the hub, or the folder of a ``config.json``; "" where none is known.

    Qwen's names follow from the catalogue's: ``qwen2.5-7b`` is ``Qwen/Qwen2.5-7B-Instruct``, ``qwen3-8b`` has no ending.
    """
    if model in _PLACES:
        return _PLACES[model]
    if model.startswith(("qwen2", "qwen3")):
        family, _, size = model.partition("-")
        ending = "" if family == "qwen3" else "-Instruct"
        return f"Qwen/{family.capitalize()}-{size.upper()}{ending}"
    if model.endswith(".json") or "/" in model:
        place = str(Path(model).parent) if model.endswith(".json") else model
        return f"./{place}" if place.startswith("-") else place  # no option of the engine
    return ""
