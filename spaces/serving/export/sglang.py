"""Serving plans as command lines of SGLang.

The arguments are those of ``sglang.launch_server`` (docs/advanced_features/server_arguments.md at commit 004813e1dd46).
"""

from __future__ import annotations

from collections.abc import Iterator

from dse.study.exports import Plan, Written

from .deployment import Deployment, cannot
from .offered import GGUF, Method, Offer, both, pairs
from .script import Argument, Asked, quoted, script

__all__ = ["write_sglang"]

_GPTQ = Method("gptq_marlin", "a GPTQ checkpoint")

OFFER = Offer(
    "sglang",
    {
        **pairs(
            {
                "bf16": Method(""),
                "fp16": Method(""),
                "fp8": Method("fp8", "a 16-bit checkpoint is quantized as it is loaded"),
                "int8": Method("w8a8_int8", "a W8A8 checkpoint"),
                "nvfp4": Method("modelopt_fp4", "an NVFP4 checkpoint"),
                "mxfp8": Method("mxfp8", "an MXFP8 checkpoint"),
            }
        ),
        ("fp8-block", "fp8"): Method("fp8", "a checkpoint with scales of 128 x 128 blocks"),
        ("fp8-block", "fp8-block"): Method("fp8", "a checkpoint with scales of 128 x 128 blocks"),
        ("int4-g128", "fp8"): Method("w4afp8", "a W4AFP8 checkpoint"),
        **both(("int4", "int4-g128", "int4-g64", "int4-g32", "int8"), _GPTQ),
        **both(("int4-awq",), Method("awq_marlin", "an AWQ checkpoint")),
        **both(("nf4", "nf4-dq", "fp4"), Method("bitsandbytes", "a bitsandbytes checkpoint")),
        **both(("mxfp4",), Method("mxfp4", "a checkpoint with MXFP4 experts, such as gpt-oss")),
        **both(GGUF, Method("gguf", "one GGUF file; give --tokenizer-path of the original model")),
    },
    {"bf16": "auto", "fp16": "auto", "fp8": "fp8_e4m3", "mxfp4": "fp4_e2m1"},
)
"""What SGLang offers."""


def write_sglang(plan: Plan) -> Written:
    """The script that starts ``sglang.launch_server`` with a plan.

    Raises:
        InputError: SGLang cannot express the plan; names the dimension and its value.
    """
    d = Deployment.of(plan)
    ranks = d.tp * d.attention_dp
    if ranks % d.ep:
        raise cannot("sglang", plan, "ep", f"it must divide the tp x attention_dp = {ranks} ranks")
    if d.attention_dp > 1 and not d.experts:
        raise cannot("sglang", plan, "attention_dp", "of a dense model it replicates all; use replicas")
    if d.draft_length and d.attention_dp > 1:
        raise cannot("sglang", plan, "draft_length", "a draft model does not go with data parallel attention")
    if d.draft_length and d.pp > 1:
        raise cannot("sglang", plan, "draft_length", "speculation does not go with pipeline parallelism")
    model, draft = d.place(), d.draft_place()
    return Written(
        script(
            d.heading(plan),
            [
                ("model-path", f'"{model.text}"', ""),
                *_parallel(d),
                *_scheduling(d),
                *_formats(plan, d),
                *_speculation(d, draft),
                *_server(d),
            ],
            'exec python -m sglang.launch_server "${ARGS[@]}"',
            [*_remarks(d), *d.untold(plan)],
            [model, draft] if d.draft_length else [model],
        ),
        d.notes("sglang", plan),
    )


def _parallel(d: Deployment) -> Iterator[Argument]:
    tp = f"tp={d.tp} x attention_dp={d.attention_dp}" if d.attention_dp > 1 else ""
    yield "tp-size", f"{d.tp * d.attention_dp}", tp
    yield "pp-size", f"{d.pp}", ""
    if d.pp > 1:
        yield "disable-overlap-schedule", "", "pipeline parallelism asks for it"
    if d.attention_dp > 1:
        yield "dp-size", f"{d.attention_dp}", ""
        yield "enable-dp-attention", "", ""
    yield "ep-size", f"{d.ep}", ""


def _scheduling(d: Deployment) -> Iterator[Argument]:
    yield "max-running-requests", f"{d.sequences * d.attention_dp}", f"batch={d.batch}, of all ranks together"
    if d.chunk:
        each = (
            f"chunk={d.chunk} of each of the {d.attention_dp} data parallel ranks"
            if d.attention_dp > 1
            else "chunk"
        )
        yield "chunked-prefill-size", f"{d.chunk * d.attention_dp}", each
        if d.pp == 1:
            yield "enable-mixed-chunk", "", "a step has a chunk and the sequences that decode"
    else:
        yield "chunked-prefill-size", "-1", "chunk=0: prompts are processed whole"
    yield "context-length", f"{d.context}", ""
    if d.block:
        yield "page-size", f"{d.block}", ""
    if not d.prefix:
        yield "disable-radix-cache", "", "no prefixes are shared"
    yield "mem-fraction-static", quoted(1 - d.reserve), "weights and cache"
    if d.graphs:
        yield "cuda-graph-max-bs", f"{d.sequences}", "graphs=true"
    else:
        yield "disable-cuda-graph", "", "graphs=false"


def _formats(plan: Plan, d: Deployment) -> Iterator[Argument]:
    method = OFFER.method(plan, d)
    yield "dtype", d.sixteen, f"weights={d.weights}, activations={d.activations}"
    if method.name:
        yield "quantization", method.name, method.checkpoint
    yield "kv-cache-dtype", OFFER.cache(plan, d), f"kv={d.kv}"


def _speculation(d: Deployment, draft: Asked) -> Iterator[Argument]:
    if d.draft_length:
        yield "speculative-algorithm", "STANDALONE", "a draft model of its own"
        yield "speculative-draft-model-path", f'"{draft.text}"', ""
        yield "speculative-num-steps", f"{d.draft_length}", "draft_length"
        yield "speculative-eagle-topk", "1", "one sequence of drafts, no tree"
        yield "speculative-num-draft-tokens", f"{d.draft_length + 1}", "with the token before them"


def _server(d: Deployment) -> Iterator[Argument]:
    yield "port", '"$((30000 + ${REPLICA:-0}))"', ""
    if d.nodes > 1:
        yield "nnodes", f"{d.nodes}", f"{d.gpus} GPUs"
        yield "node-rank", '"${NODE_RANK:?0 to ' + f"{d.nodes - 1}" + '}"', ""
        yield "dist-init-addr", '"${HEAD:?host:port of the first machine}"', ""
    if d.disaggregated:
        yield "disaggregation-mode", '"${ROLE:?prefill or decode}"', "disaggregated"


def _remarks(d: Deployment) -> Iterator[str]:
    if not d.draft_length:
        yield "# draft_length=0: no speculation."
    if d.pp > 1 and d.chunk:
        yield "# pp > 1: a step has a chunk or sequences that decode, not both."
    if d.attention_dp == 1:
        yield "# attention_dp=1: attention is divided by heads only."
    yield d.apart()
    if d.disaggregated:
        yield "# Start it with ROLE=prefill and with ROLE=decode on GPUs of their own, and before them"
        yield "# python -m sglang_router.launch_router --pd-disaggregation --prefill URL --decode URL"
