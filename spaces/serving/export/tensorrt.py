"""Serving plans as configurations of TensorRT-LLM, with the script that starts ``trtllm-serve``.

The keys are those of ``TorchLlmArgs`` (tensorrt_llm/llmapi/llm_args.py) and the options those of
tensorrt_llm/commands/serve.py at commit 00209af149e7; disaggregation as in docs/source/features/disagg-serving.md.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dse.study.exports import Plan, Written

from .deployment import Deployment, cannot
from .offered import Method, Offer, both, pairs
from .repositories import checkpoint

__all__ = ["write_tensorrt"]

_PLAIN = re.compile(r"(?!(?i:true|false|yes|no|on|off|y|n|null)$)[A-Za-z][A-Za-z0-9_./-]*")
"""Texts that YAML reads as they are."""

_BREAKS = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff]")
"""Characters that JSON writes as they are and YAML does not take, or takes for line ends."""

OFFER = Offer(
    "tensorrt-llm",
    {
        **pairs(
            {
                "bf16": Method("", "a 16-bit checkpoint"),
                "fp16": Method("", "a 16-bit checkpoint"),
                "fp8": Method("FP8", "a checkpoint that ModelOpt quantized to FP8"),
                "fp8-block": Method("FP8_BLOCK_SCALES", "a checkpoint with scales of 128 x 128 blocks"),
                "nvfp4": Method("NVFP4", "a checkpoint that ModelOpt quantized to NVFP4"),
            }
        ),
        ("fp8-block", "fp8"): Method("FP8_BLOCK_SCALES", "a checkpoint with scales of 128 x 128 blocks"),
        **both(
            ("int4-awq", "int4-g128"), Method("W4A16_AWQ", "a checkpoint that ModelOpt quantized with AWQ")
        ),
        ("int4-awq", "fp8"): Method(
            "W4A8_AWQ", "a checkpoint that ModelOpt quantized with AWQ for FP8 activations"
        ),
        **both(("mxfp4",), Method("W4A16_MXFP4", "a checkpoint with MXFP4 experts, such as gpt-oss")),
        ("mxfp4", "fp8"): Method("W4A8_MXFP4_FP8", "a checkpoint with MXFP4 experts, such as gpt-oss"),
        ("mxfp4", "mxfp8"): Method("W4A8_MXFP4_MXFP8", "a checkpoint with MXFP4 experts, such as gpt-oss"),
    },
    {"bf16": "auto", "fp16": "auto", "fp8": "fp8", "nvfp4": "nvfp4"},
)
"""What the PyTorch backend of TensorRT-LLM offers; it takes quantized checkpoints as they are."""


def write_tensorrt(plan: Plan) -> Written:
    """The configuration of a plan, and the script that starts ``trtllm-serve`` with it.

    Raises:
        InputError: TensorRT-LLM cannot express the plan; names the dimension and its value.
    """
    d = Deployment.of(plan)
    ranks = d.tp * d.attention_dp
    if d.attention_dp > 1 and d.tp > 1:
        raise cannot(
            "tensorrt-llm", plan, "attention_dp", f"it attends by sequences or by heads (tp={d.tp}), not both"
        )
    if d.attention_dp > 1 and not d.experts:
        raise cannot(
            "tensorrt-llm", plan, "attention_dp", "of a dense model it replicates attention; use replicas"
        )
    if ranks % d.ep:
        raise cannot("tensorrt-llm", plan, "ep", f"it must divide the tp x attention_dp = {ranks} ranks")
    method = OFFER.method(plan, d)
    config = _config(plan, d)
    lines = [*d.heading(plan), *_remarks(d, method), *d.untold(plan), *_yaml(config)]
    return Written(
        "\n".join(lines) + "\n",
        d.notes("tensorrt-llm", plan),
        starter=lambda file: _starter(plan, d, method, file),
    )


def _config(plan: Plan, d: Deployment) -> dict[str, Any]:
    config: dict[str, Any] = {
        "backend": "pytorch",
        "dtype": d.sixteen,
        "tensor_parallel_size": d.tp * d.attention_dp,
        "pipeline_parallel_size": d.pp,
        "enable_attention_dp": d.attention_dp > 1,
        "max_batch_size": d.sequences,
        "max_num_tokens": d.step_tokens,
        "max_seq_len": d.context,
        "enable_chunked_prefill": d.chunk > 0,
        "kv_cache_config": {
            "dtype": OFFER.cache(plan, d),
            "free_gpu_memory_fraction": round(1 - d.reserve, 6),
            "enable_block_reuse": d.prefix,
            **({"tokens_per_block": d.block} if d.block else {}),
        },
        "cuda_graph_config": {"enable_padding": True, "max_batch_size": d.sequences} if d.graphs else None,
    }
    if d.experts:
        config["moe_expert_parallel_size"] = d.ep
        config["moe_tensor_parallel_size"] = d.tp * d.attention_dp // d.ep
    if d.draft_length:
        config["disable_overlap_scheduler"] = True
        config["speculative_config"] = {
            "decoding_type": "Draft_Target",
            "max_draft_len": d.draft_length,
            "speculative_model": checkpoint(d.draft) or d.draft,
        }
    if d.disaggregated:
        config["cache_transceiver_config"] = {"backend": "NIXL", "max_tokens_in_buffer": d.context}
    return config


def _yaml(config: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Numbers, flags, texts, null and mappings of them as YAML, which writes all but mappings like JSON."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _yaml(value, f"{indent}  ")
        else:
            plain = isinstance(value, str) and _PLAIN.fullmatch(value)
            yield f"{indent}{key}: {value if plain else _quoted(value)}"


def _quoted(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _BREAKS.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _remarks(d: Deployment, method: Method) -> Iterator[str]:
    algorithm = f" ({method.name})" if method.name else ""
    yield f"# weights={d.weights}, activations={d.activations}{algorithm}: needs {method.checkpoint}."
    each = f", {d.sequences} on each of the attention_dp={d.attention_dp} ranks" if d.attention_dp > 1 else ""
    decoding = d.sequences * (1 + d.draft_length)
    yield f"# batch={d.batch}{each}; a step has {d.step_tokens} tokens: {_prefill(d)} and {decoding} that are decoded."
    yield f"# kv={d.kv}; tp={d.tp}, pp={d.pp}, ep={d.ep}{'' if d.experts else ' (the model has no experts)'}, attention_dp={d.attention_dp}."
    yield f"# draft_length={d.draft_length}{'' if d.draft_length else ': no speculation'}; graphs={str(d.graphs).lower()}."
    if d.reserve:
        yield "# The cache takes its share of what weights and activations leave free, a little less than the plan's."
    yield d.apart()
    if d.disaggregated:
        yield "# Start it for context servers (with disable_overlap_scheduler: true) and for generation servers on GPUs of their"
        yield "# own, and before them: trtllm-serve disaggregated -c FILE, with their urls under context_servers and generation_servers."


def _prefill(d: Deployment) -> str:
    return f"a chunk={d.chunk} of a prompt" if d.chunk else f"a whole prompt of up to {d.context} (chunk=0)"


def _starter(plan: Plan, d: Deployment, method: Method, file: str) -> str:
    model = d.place()
    command = f'trtllm-serve "{model.text}" --config "$(dirname "$0")"/{shlex.quote(file)} --port "$((8000 + ${{REPLICA:-0}}))"'
    lines = ["#!/bin/bash", *d.heading(plan), f"# Needs {method.checkpoint}.", *model.before]
    if d.nodes > 1:
        each = -(-d.gpus // d.nodes)
        lines.append(f"# {d.gpus} GPUs are {d.nodes} machines.")
        command = f"srun --mpi=pmix --nodes {d.nodes} --ntasks {d.gpus} --ntasks-per-node {each} trtllm-llmapi-launch {command}"
    return "\n".join([*lines, f"exec {command}"]) + "\n"
