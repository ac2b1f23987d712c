"""Serving plans as command lines of vLLM.

The arguments are those of ``vllm serve`` (docs.vllm.ai, engine arguments, data parallel and expert parallel deployment,
draft models, disaggregated prefill).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from dse.study.exports import Plan, Written

from .deployment import Deployment, cannot
from .offered import GGUF, Method, Offer, both, pairs
from .script import Argument, Asked, quoted, script

__all__ = ["write_vllm"]

_GPTQ = Method("gptq_marlin", "a GPTQ checkpoint")

OFFER = Offer(
    "vllm",
    {
        **pairs(
            {
                "bf16": Method(""),
                "fp16": Method(""),
                "fp8": Method("fp8", "a 16-bit checkpoint is quantized as it is loaded"),
                "int8": Method("compressed-tensors", "a W8A8 checkpoint"),
                "nvfp4": Method("modelopt_fp4", "an NVFP4 checkpoint"),
            }
        ),
        ("fp8-block", "fp8"): Method("fp8", "a checkpoint with scales of 128 x 128 blocks"),
        ("fp8-block", "fp8-block"): Method("fp8", "a checkpoint with scales of 128 x 128 blocks"),
        **both(("int4", "int4-g128", "int4-g64", "int4-g32", "int8"), _GPTQ),
        **both(("int4-awq",), Method("awq_marlin", "an AWQ checkpoint")),
        **both(("int3", "int3-g128", "int2", "int2-g128", "int2-g64"), Method("gptq", "a GPTQ checkpoint")),
        **both(("nf4", "nf4-dq", "fp4"), Method("bitsandbytes", "a bitsandbytes checkpoint")),
        **both(("nvfp4",), Method("compressed-tensors", "an NVFP4A16 checkpoint")),
        **both(("mxfp4",), Method("mxfp4", "a checkpoint with MXFP4 experts, such as gpt-oss")),
        **both(GGUF, Method("gguf", "one GGUF file; give --tokenizer of the original model")),
    },
    {"bf16": "auto", "fp16": "auto", "fp8": "fp8"},
)
"""What vLLM offers."""


def write_vllm(plan: Plan) -> Written:
    """The script that starts ``vllm serve`` with a plan.

    Raises:
        InputError: vLLM cannot express the plan; names the dimension and its value.
    """
    d = Deployment.of(plan)
    ranks = d.tp * d.attention_dp
    if d.ep not in (1, ranks):
        raise cannot(
            "vllm",
            plan,
            "ep",
            f"its experts are divided over 1 or over all tp x attention_dp = {ranks} ranks",
        )
    if d.attention_dp > 1 and not d.experts:
        raise cannot("vllm", plan, "attention_dp", "of a dense model it replicates all; use replicas")
    model, draft = d.place(), _escaped(d.draft_place())
    return Written(
        script(
            d.heading(plan),
            [*_parallel(d), *_scheduling(d), *_formats(plan, d), *_speculation(d, draft), *_server(d)],
            f'exec vllm serve "{model.text}" "${{ARGS[@]}}"',
            [*_remarks(d), *d.untold(plan)],
            [model, draft] if d.draft_length else [model],
        ),
        d.notes("vllm", plan),
    )


def _parallel(d: Deployment) -> Iterator[Argument]:
    yield "tensor-parallel-size", f"{d.tp}", ""
    yield "pipeline-parallel-size", f"{d.pp}", ""
    yield (
        "data-parallel-size",
        f"{d.attention_dp}",
        "attention_dp: ranks that attend to sequences of their own",
    )
    if d.ep > 1:
        yield "enable-expert-parallel", "", f"ep={d.ep}: over all {d.ep} ranks"


def _scheduling(d: Deployment) -> Iterator[Argument]:
    each = " of each data parallel rank" if d.attention_dp > 1 else ""
    yield "max-num-seqs", f"{d.sequences}", f"batch={d.batch}{each and f': {d.sequences}{each}'}"
    decoding = d.sequences * (1 + d.draft_length)
    if d.chunk:
        yield "enable-chunked-prefill", "", ""
        yield (
            "max-num-batched-tokens",
            f"{d.step_tokens}",
            f"chunk={d.chunk} and {decoding} tokens that are decoded",
        )
    else:
        yield "no-enable-chunked-prefill", "", "chunk=0: prompts are processed whole"
        yield (
            "max-num-batched-tokens",
            f"{d.step_tokens}",
            f"a whole prompt of up to {d.context} tokens and {decoding} that are decoded",
        )
    yield "max-model-len", f"{d.context}", ""
    if d.block:
        yield "block-size", f"{d.block}", ""
    yield "enable-prefix-caching" if d.prefix else "no-enable-prefix-caching", "", ""
    yield "gpu-memory-utilization", quoted(1 - d.reserve), ""
    if not d.graphs:
        yield "enforce-eager", "", "graphs=false"


def _formats(plan: Plan, d: Deployment) -> Iterator[Argument]:
    method = OFFER.method(plan, d)
    yield "dtype", d.sixteen, f"weights={d.weights}, activations={d.activations}"
    if method.name:
        yield "quantization", method.name, method.checkpoint
    yield "kv-cache-dtype", OFFER.cache(plan, d), f"kv={d.kv}"


def _escaped(place: Asked) -> Asked:
    """A place as it stands in a text of JSON."""
    return replace(place, default=json.dumps(place.default)[1:-1])


def _speculation(d: Deployment, draft: Asked) -> Iterator[Argument]:
    if d.draft_length:
        rest = json.dumps({"method": "draft_model", "num_speculative_tokens": d.draft_length})[1:]
        yield (
            "speculative-config",
            f'"{{\\"model\\": \\"{draft.text}\\", {rest.replace(chr(34), chr(92) + chr(34))}"',
            f"draft_length={d.draft_length}",
        )


def _server(d: Deployment) -> Iterator[Argument]:
    yield "port", '"$((8000 + ${REPLICA:-0}))"', ""
    if d.nodes > 1:
        yield (
            "distributed-executor-backend",
            "ray",
            f"{d.gpus} GPUs are {d.nodes} machines: start a Ray cluster on them first",
        )
    if d.disaggregated:
        config = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
        yield "kv-transfer-config", quoted(config), "disaggregated: prefill and decode servers both"


def _remarks(d: Deployment) -> Iterator[str]:
    if d.graphs:
        yield "# graphs=true: vLLM captures CUDA graphs unless told otherwise."
    if not d.draft_length:
        yield "# draft_length=0: no speculation."
    if d.ep == 1:
        yield "# ep=1: experts are divided as tensors." if d.experts else "# ep=1: the model has no experts."
    yield d.apart()
    if d.disaggregated:
        yield "# Start it for prefill and for decode on GPUs of their own; a proxy sends each request to one and then to the other."
