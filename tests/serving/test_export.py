"""Serving plans for engines: golden texts, what is refused and why, and nothing of a plan that is left out."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dse.cli.designing import complete
from dse.errors import InputError
from dse.problem.library import load
from dse.spaces.catalog import hardware, model
from dse.spaces.serving.export import TARGETS, read_plan
from dse.study.exports import Plan

ENGINES = ("vllm", "tensorrt-llm", "sglang")
DESIGN: dict[str, Any] = {
    "hardware": "h100-sxm",
    "tp": 4.0,
    "pp": 1.0,
    "ep": 1.0,
    "attention_dp": 1.0,
    "replicas": 2.0,
    "batch": 64.0,
    "weights": "fp8",
    "activations": "fp8",
    "kv": "fp8",
    "chunk": 2048.0,
    "draft_length": 3.0,
    "graphs": True,
    "disaggregated": False,
}
INPUTS: dict[str, Any] = {
    "model": "llama-3.1-70b",
    "draft": "llama-3.2-1b",
    "max_context": 8192.0,
    "memory_reserve": 0.1,
    "prefix_hit": 0.5,
    "kv_block": 16.0,
}
MIXTURE: dict[str, Any] = {
    "model": "deepseek-v3",
    "tp": 1.0,
    "ep": 8.0,
    "attention_dp": 8.0,
    "weights": "fp8-block",
    "kv": "bf16",
    "draft_length": 0.0,
}


def plan(**changes: Any) -> Plan:
    """A plan with some dimensions and inputs changed."""
    inputs = {name: changes.pop(name, value) for name, value in INPUTS.items()}
    design = {**DESIGN, **changes}
    values = {**inputs, **design}
    texts = {
        name: str(v).lower() if v is True or v is False else f"{v:g}" if isinstance(v, float) else v
        for name, v in values.items()
    }
    rows = {"model": dict(model(inputs["model"])), "hardware": dict(hardware(design["hardware"]))}
    return Plan("serving", design, inputs, rows, texts, frozenset({"model"}))


def body(engine: str, **changes: Any) -> str:
    """What an engine is told: the text and its starter without the comments that repeat the plan."""
    written = TARGETS[engine](plan(**changes))
    text = written.text + (written.starter("plan.yaml") if written.starter else "")
    return "\n".join(
        line for line in text.splitlines() if not line.startswith("# dse:") and " x h" not in line
    )


HEAD = """\
# llama-3.1-70b: 2 instances of 4 x h100-sxm, batch=64 on each
# dse: model=llama-3.1-70b hardware=h100-sxm tp=4 pp=1 ep=1 attention_dp=1 replicas=2 batch=64 weights=fp8 activations=fp8 kv=fp8 chunk=2048 draft_length=3 graphs=true disaggregated=false
# replicas=2: start it with REPLICA=0 to 1 on GPUs of their own, behind a load balancer.
"""

VLLM = f"""\
#!/bin/bash
{HEAD}ARGS=(
  --tensor-parallel-size 4
  --pipeline-parallel-size 1
  --data-parallel-size 1  # attention_dp: ranks that attend to sequences of their own
  --max-num-seqs 64  # batch=64
  --enable-chunked-prefill
  --max-num-batched-tokens 2304  # chunk=2048 and 256 tokens that are decoded
  --max-model-len 8192
  --block-size 16
  --enable-prefix-caching
  --gpu-memory-utilization 0.9
  --dtype bfloat16  # weights=fp8, activations=fp8
  --quantization fp8  # a 16-bit checkpoint is quantized as it is loaded
  --kv-cache-dtype fp8  # kv=fp8
  --speculative-config "{{\\"model\\": \\"${{DRAFT:-meta-llama/Llama-3.2-1B-Instruct}}\\", \\"method\\": \\"draft_model\\", \\"num_speculative_tokens\\": 3}}"  # draft_length=3
  --port "$((8000 + ${{REPLICA:-0}}))"
)
# graphs=true: vLLM captures CUDA graphs unless told otherwise.
# ep=1: the model has no experts.
# disaggregated=false: the same GPUs process prompts and decode.
exec vllm serve "${{MODEL:-meta-llama/Llama-3.1-70B-Instruct}}" "${{ARGS[@]}}"
"""

SGLANG = f"""\
#!/bin/bash
{HEAD}ARGS=(
  --model-path "${{MODEL:-meta-llama/Llama-3.1-70B-Instruct}}"
  --tp-size 4
  --pp-size 1
  --ep-size 1
  --max-running-requests 64  # batch=64, of all ranks together
  --chunked-prefill-size 2048  # chunk
  --enable-mixed-chunk  # a step has a chunk and the sequences that decode
  --context-length 8192
  --page-size 16
  --mem-fraction-static 0.9  # weights and cache
  --cuda-graph-max-bs 64  # graphs=true
  --dtype bfloat16  # weights=fp8, activations=fp8
  --quantization fp8  # a 16-bit checkpoint is quantized as it is loaded
  --kv-cache-dtype fp8_e4m3  # kv=fp8
  --speculative-algorithm STANDALONE  # a draft model of its own
  --speculative-draft-model-path "${{DRAFT:-meta-llama/Llama-3.2-1B-Instruct}}"
  --speculative-num-steps 3  # draft_length
  --speculative-eagle-topk 1  # one sequence of drafts, no tree
  --speculative-num-draft-tokens 4  # with the token before them
  --port "$((30000 + ${{REPLICA:-0}}))"
)
# attention_dp=1: attention is divided by heads only.
# disaggregated=false: the same GPUs process prompts and decode.
exec python -m sglang.launch_server "${{ARGS[@]}}"
"""

TENSORRT = f"""\
{HEAD}# weights=fp8, activations=fp8 (FP8): needs a checkpoint that ModelOpt quantized to FP8.
# batch=64; a step has 2304 tokens: a chunk=2048 of a prompt and 256 that are decoded.
# kv=fp8; tp=4, pp=1, ep=1 (the model has no experts), attention_dp=1.
# draft_length=3; graphs=true.
# The cache takes its share of what weights and activations leave free, a little less than the plan's.
# disaggregated=false: the same GPUs process prompts and decode.
backend: pytorch
dtype: bfloat16
tensor_parallel_size: 4
pipeline_parallel_size: 1
enable_attention_dp: false
max_batch_size: 64
max_num_tokens: 2304
max_seq_len: 8192
enable_chunked_prefill: true
kv_cache_config:
  dtype: fp8
  free_gpu_memory_fraction: 0.9
  enable_block_reuse: true
  tokens_per_block: 16
cuda_graph_config:
  enable_padding: true
  max_batch_size: 64
disable_overlap_scheduler: true
speculative_config:
  decoding_type: Draft_Target
  max_draft_len: 3
  speculative_model: meta-llama/Llama-3.2-1B-Instruct
"""


@pytest.mark.parametrize(
    ("engine", "golden"), [("vllm", VLLM), ("sglang", SGLANG), ("tensorrt-llm", TENSORRT)]
)
def test_a_plan_is_written(engine: str, golden: str) -> None:
    assert TARGETS[engine](plan()).text == golden


def test_the_starter_of_tensorrt_takes_its_configuration() -> None:
    written = TARGETS["tensorrt-llm"](plan(tp=16.0))
    assert written.starter is not None
    last = written.starter("plan.yaml").splitlines()[-1]
    assert last == (
        "exec srun --mpi=pmix --nodes 2 --ntasks 16 --ntasks-per-node 8 trtllm-llmapi-launch"
        ' trtllm-serve "${MODEL:-meta-llama/Llama-3.1-70B-Instruct}" --config "$(dirname "$0")"/plan.yaml'
        ' --port "$((8000 + ${REPLICA:-0}))"'
    )
    assert YAML(typ="safe").load(written.text)["tensor_parallel_size"] == 16


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_the_shell_understands_the_script(engine: str, tmp_path: Path) -> None:
    stub = tmp_path / {"vllm": "vllm", "sglang": "python"}[engine]
    stub.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    stub.chmod(0o755)
    (tmp_path / "plan.sh").write_text(TARGETS[engine](plan()).text)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "REPLICA": "1", "DRAFT": "a/draft"}
    done = subprocess.run(
        ["bash", str(tmp_path / "plan.sh")], env=env, capture_output=True, text=True, check=True
    )
    words = done.stdout.splitlines()
    if engine == "vllm":
        assert words[:2] == ["serve", "meta-llama/Llama-3.1-70B-Instruct"]
        assert words[words.index("--port") + 1] == "8001"
        drafts = json.loads(words[words.index("--speculative-config") + 1])
        assert drafts == {"model": "a/draft", "method": "draft_model", "num_speculative_tokens": 3}
    else:
        assert words[:2] == ["-m", "sglang.launch_server"]
        assert words[words.index("--speculative-draft-model-path") + 1] == "a/draft"
        assert words[words.index("--port") + 1] == "30001"


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_never_run(engine: str, tmp_path: Path) -> None:
    """Folders, rows and files may have any name: the shell gives them to the engine as they are."""
    folder = "/tmp/$(touch ran) `touch ran` \"; touch ran; '}${x}\\\n touch ran\n# \u2028\x85é%20\n"
    names = {"model": folder + "/config.json", "draft": f"draft{folder}/config.json"}
    known = plan(batch=8.0)
    texts = {**known.texts, **names, "hardware": "h100\ntouch ran"}
    hostile = replace(
        known,
        inputs={**known.inputs, **names},
        texts={**texts, "routing": "x\ntouch ran"},
        design={**known.design, "routing": "x\ntouch ran"},
        given=known.given | {"draft"},
    )
    written = TARGETS[engine](hostile)
    file = "$(touch ran)';touch ran;'.yaml"
    script = written.starter(file) if written.starter else written.text
    for name in ("vllm", "python", "trtllm-serve"):
        (tmp_path / name).write_text('#!/bin/bash\nprintf "%s\\0" "$@"\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "plan.sh").write_text(script)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "plan.sh"], env=env, cwd=tmp_path, capture_output=True, check=True, timeout=20
    )
    assert not (tmp_path / "ran").exists()
    assert not done.stderr
    words = done.stdout.decode().split("\0")
    assert folder in words
    draft = f"draft{folder}"
    if engine == "vllm":
        assert json.loads(words[words.index("--speculative-config") + 1])["model"] == draft
    elif engine == "sglang":
        assert words[words.index("--speculative-draft-model-path") + 1] == draft
    else:
        assert words[words.index("--config") + 1] == f"./{file}"
        assert YAML(typ="safe").load(written.text)["speculative_config"]["speculative_model"] == draft


def test_a_name_is_text_in_the_configuration_and_no_option() -> None:
    assert 'speculative_model: "true"' in TARGETS["tensorrt-llm"](plan_of_draft("true/config.json")).text
    assert "./-x" in TARGETS["vllm"](plan_of_draft("-x/config.json")).text


def plan_of_draft(name: str) -> Plan:
    """The plan with another draft model, which need not exist."""
    known = plan()
    return replace(known, inputs={**known.inputs, "draft": name})


@pytest.mark.parametrize("engine", ENGINES)
def test_no_dimension_is_dropped(engine: str) -> None:
    """Each dimension changes what is written, beyond the comment that repeats the plan, or is refused."""
    others: dict[str, Any] = {
        "pp": 2.0,
        "tp": 8.0,
        "replicas": 3.0,
        "batch": 128.0,
        "kv": "bf16",
        "chunk": 0.0,
        "draft_length": 0.0,
        "graphs": False,
        "disaggregated": True,
        "max_context": 4096.0,
        "memory_reserve": 0.2,
        "prefix_hit": 0.0,
        "kv_block": 32.0,
    }
    base = {"draft_length": 0.0} if engine == "sglang" else {}  # which has no drafts with pipelines
    for name, value in others.items():
        assert body(engine, **{**base, name: value}) != body(engine, **({} if name in base else base)), name
    assert body(engine, weights="bf16", activations="bf16") != body(engine)
    apart = {**base, "disaggregated": True}
    assert body(engine, **apart, prefill_ratio=2.0) != body(engine, **apart)
    mixture = body(engine, **MIXTURE)
    for name, value in {"ep": 1.0, "attention_dp": 16.0, "tp": 8.0}.items():
        changes: dict[str, Any] = {**MIXTURE, name: value}
        changes |= {"attention_dp": 1.0} if name == "tp" else {"ep": 16.0} if name == "attention_dp" else {}
        assert body(engine, **changes) != mixture, name
    assert "# Not for the engine: routing=random." in TARGETS[engine](plan(routing="random")).text


@pytest.mark.parametrize(
    ("engine", "changes", "message"),
    [
        ("vllm", {"kv": "int8"}, r"vllm cannot express kv=int8: it caches in bf16, fp16, fp8"),
        ("vllm", {"weights": "exl2-4"}, r"vllm cannot express weights=exl2-4: it does not offer this format"),
        ("vllm", {"activations": "bf16"}, r"activations=bf16: with weights=fp8 it computes in fp8"),
        ("vllm", {**MIXTURE, "ep": 2.0}, r"ep=2: its experts are divided over 1 or over all .* = 8 ranks"),
        ("vllm", {"attention_dp": 2.0}, r"attention_dp=2: of a dense model it replicates all; use replicas"),
        (
            "vllm",
            {"weights": "mxfp4", "activations": "fp4"},
            r"activations=fp4: with weights=mxfp4 it computes in bf16",
        ),
        (
            "sglang",
            {"weights": "int3-g128", "activations": "bf16"},
            r"sglang cannot express weights=int3-g128",
        ),
        ("sglang", {**MIXTURE, "draft_length": 2.0}, r"draft_length=2: a draft model does not go with data"),
        ("sglang", {"pp": 2.0}, r"draft_length=3: speculation does not go with pipeline parallelism"),
        ("sglang", {**MIXTURE, "ep": 3.0}, r"ep=3: it must divide the tp x attention_dp = 8 ranks"),
        (
            "tensorrt-llm",
            {**MIXTURE, "tp": 2.0},
            r"attention_dp=8: it attends by sequences or by heads \(tp=2\)",
        ),
        ("tensorrt-llm", {"weights": "q4_k_m", "activations": "bf16"}, r"weights=q4_k_m: it does not offer"),
        ("tensorrt-llm", {"tp": 2.5}, r"tp must be a whole number, but is '2\.5'"),
    ],
)
def test_what_an_engine_lacks_is_refused(engine: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TARGETS[engine](plan(**changes))


def test_plans_of_the_shipped_space() -> None:
    given = {
        "hardware": "v100-sxm2-32",
        "tp": "2",
        "pp": "1",
        "weights": "fp16",
        "activations": "bf16",
        "kv": "bf16",
    }
    problem = load("serving", {"model": "llama-3.1-8b", "engine": "sglang", "max_context": "4096"})
    design = complete(problem, {**given, "chunk": "512", "batch": "8", "disaggregated": "false"}, None)
    for engine in ENGINES:
        written = TARGETS[engine](Plan.of(problem, design))
        assert "float16" in written.text  # bf16 stands for both 16-bit formats, and this GPU has one
        assert "Not for the engine" not in written.text
        assert "n_gpus=8 are enough for 4." in written.text
        expected = f"times were predicted for engine=sglang, not for {engine}"
        assert written.notes == (() if engine == "sglang" else (expected,))
    mixed = load("serving", {"model": "gpt-oss-120b"})
    layout = {"tp": "1", "pp": "1", "attention_dp": "8", "ep": "8", "weights": "mxfp4", "kv": "bf16"}
    free = {
        "hardware": "h100-sxm",
        "activations": "bf16",
        "disaggregated": "false",
        "chunk": "0",
        "batch": "64",
    }
    written = TARGETS["vllm"](Plan.of(mixed, complete(mixed, {**layout, **free}, None)))
    assert "--data-parallel-size 8" in written.text
    assert written.notes == (
        "sequences of more than 1280 tokens will be refused; max_context says how long they may be",
    )


def test_all_gpus_of_a_disaggregated_plan_are_named() -> None:
    """An instance for prompts may be shared by several, or several may work for one."""
    for changes, said in (
        (
            {"replicas": 1.0, "prefill_ratio": 2.0, "n_gpus": 24.0},
            "12 x h100-sxm: 2 instances of 4 for prompts and 1 instance of 4 to decode, batch=64 on each of these",
        ),
        (
            {"replicas": 1.0, "prefill_ratio": 0.5, "n_gpus": 24.0},
            "12 x h100-sxm: 1 instance of 4 for prompts and 2 instances of 4 to decode, batch=64 on each of these",
        ),
        (
            {"replicas": 4.0, "prefill_ratio": 0.5, "n_gpus": 24.0},
            "24 x h100-sxm: 2 instances of 4 for prompts and 4 instances of 4 to decode, batch=64 on each of these",
        ),
    ):
        head = TARGETS["vllm"](plan(disaggregated=True, **changes)).text.splitlines()
        assert head[1] == f"# llama-3.1-70b: {said}"
        twice = "# Without a request rate these stand for all instances: n_gpus=24 are enough for 2 times as many."
        assert (twice in head) == (changes["replicas"] == 1)


def test_json_is_read_back() -> None:
    problem = load("serving", {"model": "llama-3.1-70b", "n_gpus": "16"})
    wanted = plan()
    known = read_plan(TARGETS["json"](wanted).text, "plan.json", problem)
    assert known.design == {name: wanted.texts[name] for name in DESIGN}
    assert known.inputs["max_context"] == "8192"
    with pytest.raises(InputError, match="no plan that dse export --to json wrote"):
        read_plan("{}", "plan.json", problem)
