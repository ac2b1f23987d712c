"""Launch lines as people write them: read with their places, or refused with the reason."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from dse.cli.designing import value_of
from dse.cli.planning import read_design
from dse.errors import DseError, InputError
from dse.evaluation.verdict import broken_rule
from dse.problem.library import load
from dse.spaces.training.export import TARGETS, model_row, read_plan
from dse.spaces.training.export.shell import read_script
from dse.study.exports import KnownPlan, Plan
from tests.training.standin import DESIGN, plan, problem

MODEL = """--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear
--untie-embeddings-and-output-weights --position-embedding-type rope --max-position-embeddings 8192
--attention-dropout 0 --hidden-dropout 0 --vocab-size 128256 --seq-length 8192
"""
REST = "--micro-batch-size 1 --global-batch-size 128 --bf16\n"
LAUNCH = "torchrun --nproc-per-node 8 --nnodes 4 pretrain_gpt.py\n"


def read(text: str, file: str = "args.txt") -> KnownPlan:
    known: KnownPlan = read_plan(text, file, problem())
    return known


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return str(caught.value)


SCRIPT = """#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:8
set -euo pipefail

GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-1}
TP=4; PP=2   # parallel sizes
DP=$(( GPUS_PER_NODE * NNODES / (TP * PP) ))
MBS=1
GBS=$((DP * MBS * 16))

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES
    --node_rank ${SLURM_NODEID}
)
GPT_ARGS="
    --num-layers 32 \\
    --hidden-size 4096
    --ffn-hidden-size=14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8
    --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
    --position-embedding-type rope --max-position-embeddings 8192 --seq-length 8192
    --attention-dropout 0.0 --hidden-dropout 0.0 --vocab-size 128256
"
cat > notes.txt <<EOF
--micro-batch-size 99
EOF
torchrun "${DISTRIBUTED_ARGS[@]}" pretrain_gpt.py \\
    $GPT_ARGS \\
    --tensor-model-parallel-size ${TP} --pipeline-model-parallel-size "$PP" \\
    --sequence-parallel --use-distributed-optimizer \\
    --micro-batch-size $MBS --global-batch-size $GBS \\
    --bf16 --use-flash-attn --lr 3e-4 --data-path '/data/my corpus' ${EXTRA_ARGS:-} 2>&1 | tee log.txt
"""


def test_a_script_with_variables_lists_and_slurm() -> None:
    known = read(SCRIPT)
    assert known.inputs == {
        "framework": "megatron",
        "seq_len": "8192",
        "n_gpus": "32",
        "global_batch": "64",
        "model": "llama-3-8b",
    }
    assert known.design["tp"] == "4"
    assert known.design["sharding"] == "distributed-optimizer"
    assert known.design["overlap_dp"] == "false"
    assert known.places["tp"] == "args.txt:32: --tensor-model-parallel-size 4"
    assert "--use-flash-attn" in known.ignored
    assert "--lr 3e-4" in known.ignored


def test_a_file_of_arguments() -> None:
    known = read((MODEL + REST).replace("\n", " ").replace(" --", "\n--"))
    assert known.design["micro_batch"] == "1"
    assert "n_gpus" not in known.inputs
    assert known.inputs["global_batch"] == "128"
    assert known.needs == ("n_gpus",)
    assert known.assumed == ("hardware",)


def test_tasks_count_where_there_is_no_launcher() -> None:
    line = f"python pretrain_gpt.py {FLAT}"
    assert read(f"srun -N 2 -n 16 {line}").inputs["n_gpus"] == "16"
    assert read(f"mpirun -np 8 {line}").inputs["n_gpus"] == "8"
    assert read(f"deepspeed --num_nodes 2 --num_gpus 4 {line}").inputs["n_gpus"] == "8"


FLAT = f"{MODEL}{REST}".replace("\n", " ")
BASE = f"{LAUNCH.strip()} {FLAT}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--num-layers-per-virtual-pipeline-stage 4 --pipeline-model-parallel-size 2", {"chunks": "4"}),
        ("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 8", {"edges": "even"}),
        ("--cp-comm-type a2a a2a --context-parallel-size 2", {"cp_kind": "ulysses"}),
        ("--recompute-activations", {"recompute": "attention"}),
        (
            "--recompute-granularity full --recompute-method block --recompute-num-layers 32",
            {"recompute_block": "1"},
        ),
        (
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 4",
            {"recompute_block": "4"},
        ),
        ("--fp8-format hybrid --fp8-recipe blockwise", {"format": "fp8"}),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", {"format": "fp8"}),
        ("--use-tp-pp-dp-mapping", {"placement": "tp-cp-pp-dp"}),
        ("--sequence-parallel", {"sequence_parallel": "false"}),
        ("--mtp-num-layers 0 --main-grads-dtype fp32", {}),
    ],
)
def test_the_same_thing_in_other_words(text: str, expected: dict[str, str]) -> None:
    design = read(f"{BASE} {text}").design
    assert {name: design[name] for name in expected} == expected


def test_explicit_layers_of_the_ends_are_edges() -> None:
    text = BASE.replace("--vocab-size 128256", "--pipeline-model-parallel-size 16").replace(
        "--nnodes 4", "--nnodes 16"
    )
    for small, large in (
        ("layers 32", "layers 126"),
        ("14336", "53248"),
        ("4096", "16384"),
        ("heads 32", "heads 128"),
    ):
        text = text.replace(small, large)
    ends = " --decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7"
    assert read(text + ends).design["edges"] == "both"
    assert read(text + ends).inputs["model"] == "llama-3.1-405b"
    assert "leave 116 for 14 stages" in refused(text + ends.replace("num-layers 7", "num-layers 5"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{BASE} \\\n --micro-batch-size 2",
            "args.txt:2: --micro-batch-size 2 contradicts --micro-batch-size 1 in line 1",
        ),
        (f"{BASE} --fp16", "--fp16: it contradicts args.txt:1: --bf16"),
        (f"{BASE} --tensor-model-parallel-sized 4", "did you mean 'tensor-model-parallel-size'?"),
        (f"{BASE} --tensor_model_parallel_size 4", "did you mean 'tensor-model-parallel-size'?"),
        (f"{BASE} --grad-reduce-in-bf16", "gradients that are reduced in bf16: this changes the cost"),
        (f"{BASE} --mtp-num-layers 1", "layers that predict further tokens"),
        (f"{BASE} --optimizer muon", "the cost model knows adam only"),
        (f"{BASE} --batch-size 4", "takes this no longer; write --micro-batch-size"),
        (f"{BASE} --context-parallel-size", "args.txt:1: --context-parallel-size needs a value"),
        (f"{BASE} --context-parallel-size --use-flash-attn", "--context-parallel-size needs a value"),
        (f"{BASE} --context-parallel-size two", "--context-parallel-size two: expected a whole number"),
        (f"{BASE} --context-parallel-size -2", "--context-parallel-size -2: expected a whole number"),
        (f"{BASE} --context-parallel-size 0", "expected a whole number above 0"),
        (f"{BASE} --context-parallel-size 2 4", "takes one value, but is followed by 2 4"),
        (f"{BASE} --group-query-attention yes", "takes no value"),
        (f"{BASE} --context-parallel-size $CP", "its value is not in the file"),
        (
            f"{BASE} --pipeline-model-parallel-size 3",
            "4 nodes of 8 GPUs, which tp x pp x cp = 3 does not divide",
        ),
        (
            f"{BASE} --pipeline-model-parallel-size 32 --account-for-loss-in-pipeline-split",
            "33 layers (with loss)",
        ),
        (f"{BASE} --tensor-model-parallel-size 16", "8 key-value heads are not divisible by 16"),
        (f"{BASE} --overlap-param-gather", "it needs --use-distributed-optimizer"),
        (f"{BASE} --use-distributed-optimizer --overlap-param-gather", "it needs --overlap-grad-reduce"),
        (f"{BASE} --tp-comm-overlap", "it needs --sequence-parallel"),
        (f"{BASE} --use-megatron-fsdp", "not with no_shard"),
        (f"{BASE} --cp-comm-type p2p a2a --context-parallel-size 2", "the cost model knows one of p2p, a2a"),
        (f"{BASE} --expert-model-parallel-size 2", "the model has no experts"),
        (f"{BASE} --recompute-granularity full", "full recomputation needs --recompute-method"),
        (f"{BASE} --recompute-granularity some", "expected full or selective"),
        (f"{BASE} --recompute-granularity selective --recompute-modules layernorm", "of just layernorm"),
        (
            f"{BASE} --num-layers-per-virtual-pipeline-stage 4 --num-virtual-stages-per-pipeline-rank 4",
            "it contradicts args.txt:1: --num-virtual-stages-per-pipeline-rank 4",
        ),
        (BASE.replace("--nnodes 4", "--nnodes 1:4"), "a range of nodes"),
        (
            BASE.replace("--seq-length 8192", "--seq-length 0"),
            "--seq-length 0: expected a whole number above 0",
        ),
        (
            BASE.replace("--seq-length 8192", "--seq-length 16384"),
            "--max-position-embeddings 8192: it is below",
        ),
        (
            BASE.replace("--global-batch-size 128", "--global-batch-size 100"),
            "a global batch of 100 is not divisible",
        ),
        (BASE.replace("--bf16", ""), "there is neither --bf16 nor --fp16"),
        (BASE.replace("--num-layers 32", ""), "there is no --num-layers"),
        (BASE.replace("--micro-batch-size 1", ""), "there is no --micro-batch-size"),
        ("echo hello\n", "there is no argument of Megatron-LM in it"),
        ("", "there is no argument of Megatron-LM in it"),
        (f"{BASE} --lr '3e-4", "args.txt:1: the quote ' is never closed"),
        (f'{BASE} --lr "3e-4', 'args.txt:1: the quote " is never closed'),
        (f"A=(1 2\n{BASE}", "args.txt:1: the list A has no end"),
        ("cat <<EOF\nhello\n", "the text up to EOF has no end"),
        ("# dse: tp=8\n" + BASE, "args.txt:1: tp=8 contradicts"),
        (
            "# dse: model=llama-2-7b\n" + BASE,
            "contradicts the arguments: ffn 11008, not 14336; kv_heads 32, not 8",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    assert said in refused(text)


def test_an_unknown_architecture_names_the_nearest() -> None:
    said = refused(BASE.replace("--num-layers 32", "--num-layers 48").replace("--vocab-size 128256", ""))
    assert "the catalogue has no model of this architecture; add --vocab-size" in said
    assert "llama-3-8b: layers 32, not 48" in said


def test_an_unknown_architecture_becomes_a_model_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "launch.sh"
    path.write_text(BASE.replace("--num-layers 32", "--num-layers 48"), encoding="utf-8")
    known = read(path.read_text(encoding="utf-8"), str(path))
    assert known.inputs["model"] == str(path)
    row = model_row(path)
    assert (row["layers"], row["kv_heads"], row["head_dim"], row["vocab"]) == (48, 8, 128, 128256)
    found = plan(dict(known.design), **known.inputs)
    assert found.rows["model"]["layers"] == 48


def test_models_of_one_architecture_are_told_apart_by_their_vocabulary() -> None:
    line = BASE.replace("--num-layers 32", "--num-layers 80").replace(
        "--hidden-size 4096", "--hidden-size 8192"
    )
    line = line.replace("14336", "28672").replace("--num-attention-heads 32", "--num-attention-heads 64")
    assert read(line).inputs["model"] == "llama-3-70b"
    assert read(line.replace("128256", "32000")).inputs["model"] == "llama-2-70b"
    said = refused(line.replace("--vocab-size 128256", "").replace("embeddings 8192", "embeddings 9000"))
    assert "its model may be llama-2-70b or llama-3-70b" in said
    assert "--set model=" in said


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("a.json", "{", "a.json:1:2: this is no JSON"),
        ("a.json", "[1]", "expected a JSON object"),
        ("a.json", '{"a": ' + "[" * 200_000, "a.json: this JSON is nested too deep to be read"),
        ("a.txt", "[a]\nb = " + "[" * 3_000, "a.txt: this TOML is nested too deep to be read"),
        ("a.json", "{}", "expected a plan in JSON or a DeepSpeed configuration, but found nothing"),
        ("a.json", '{"inputs": {}, "design": {"tp": [1]}}', "'design' must be an object of texts"),
        (
            "a.json",
            '{"inputs": {}, "design": {}, "space": "camera"}',
            "for the space 'camera', not for 'training'",
        ),
        ("a.json", '{"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 1}', "is 'auto'"),
        ("a.json", '{"train_batch_size": 8}', "'train_micro_batch_size_per_gpu' is missing"),
        (
            "a.json",
            '{"train_batch_size": 9, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}',
            "train_batch_size 9 contradicts 2 x 2",
        ),
        ("a.json", '{"train_batch_sise": 9, "zero_optimization": {}}', "did you mean 'train_batch_size'?"),
        ("a.json", '{"train_micro_batch_size_per_gpu": 1}', "expected one of bf16 and fp16"),
        ("a.toml", "[parallelism\n", "this is no TOML"),
        ("a.toml", "[tool]\nx = 1\n", "expected sections such as [parallelism]"),
        ("a.toml", "[parallelism]\ntensor_parallel_degre = 4\n", "did you mean 'tensor_parallel_degree'?"),
        ("a.toml", "[parallelism]\ntensor_parallel_degree = 0\n", "expected a whole number of at least 1"),
        (
            "a.toml",
            "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'ZBVZeroBubble'\n",
            "'ZBVZeroBubble' is none of GPipe, 1F1B, Interleaved1F1B",
        ),
    ],
)
def test_other_files_that_cannot_be_read(file: str, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text, file)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("X='1 2'\na $X \"$X\" x${X}y", ["a", "1", "2", "1 2", "x1", "2y"]),
        ("L=(1 '2 3')\na ${L[@]} \"${L[@]}\" $L", ["a", "1", "2", "3", "1", "2 3", "1"]),
        ("L=(1)\nL+=(2)\na ${L[*]}", ["a", "1", "2"]),
        ("A=b\nA+=c\na $A", ["a", "bc"]),
        ("N=3\na $((N*(2+$N)%7/2)) ${M:-4} ${M-$N}", ["a", "0", "4", "3"]),
        ("a b \\\n c # d\n", ["a", "b", "c"]),
        ('a "b \\\nc" "\\$X" "\\n"', ["a", "b c", "$X", "\\n"]),
        ("export A=1 B=2; if true; then C=3; fi; a $A$B$C", ["a", "123"]),
    ],
)
def test_words_are_those_of_a_shell(text: str, words: list[str]) -> None:
    commands = [[word.text for word in command] for command in read_script(text, "f").commands]
    assert words in commands


def test_a_variable_that_doubles_itself_is_refused() -> None:
    text = "A=aaaaaaaaaa\n" + "A=$A$A\n" * 40
    with pytest.raises(InputError, match="too long"):
        read_script(text, "f")


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="ab1 \n\t'\"\\$(){}[]<>&|;#=-+*/`@:", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(DseError):
        read(f"{text}\n{BASE}")


_PLANS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from(["1", "2", "4", "8"]),
        "sequence_parallel": st.sampled_from(["false", "true"]),
        "pp": st.sampled_from(["1", "2", "4", "8"]),
        "schedule": st.sampled_from(["1f1b", "interleaved"]),
        "chunks": st.sampled_from(["1", "2", "4"]),
        "cp": st.sampled_from(["1", "2", "4"]),
        "cp_kind": st.sampled_from(["ring", "ulysses"]),
        "ep": st.sampled_from(["1", "2", "8"]),
        "expert_tp": st.sampled_from(["false", "true"]),
        "dispatch": st.sampled_from(["dropless", "capacity"]),
        "sharding": st.sampled_from(["ddp", "distributed-optimizer", "megatron-fsdp"]),
        "micro_batch": st.sampled_from(["1", "2", "4"]),
        "recompute": st.sampled_from(["none", "attention", "selective", "mlp", "full"]),
        "recompute_block": st.sampled_from(["1", "2"]),
        "format": st.sampled_from(["bf16", "fp8"]),
        "optimizer": st.sampled_from(["adam", "adam-offload"]),
        "placement": st.sampled_from(["tp-cp-dp-pp", "tp-cp-pp-dp"]),
        "overlap_dp": st.sampled_from(["false", "true"]),
        "overlap_tp": st.sampled_from(["false", "true"]),
        "edges": st.sampled_from(["even", "even", "even", "both"]),
    }
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    design=_PLANS,
    model=st.sampled_from(
        ["llama-3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b", "megatron-22b", "deepseek-v3", "gpt-oss-20b"]
    ),
    n_gpus=st.sampled_from(["64", "256"]),
    seq_len=st.sampled_from(["2048", "4096"]),
)
def test_every_plan_that_megatron_can_express_is_read_back(
    design: dict[str, str], model: str, n_gpus: str, seq_len: str
) -> None:
    if design["tp"] == "1":
        design["sequence_parallel"] = "false"
    if design["pp"] == "1":
        design |= {"schedule": "1f1b", "edges": "even"}
    if design["schedule"] == "1f1b" or design["chunks"] == "1":
        design |= {"schedule": "1f1b", "chunks": "1"}
    if design["cp"] == "1":
        design["cp_kind"] = "ring"
    if design["recompute"] != "full":
        design["recompute_block"] = "1"
    if not plan(model=model).rows["model"]["experts"]:
        design |= {"ep": "1", "expert_tp": "false", "dispatch": "dropless"}
    chosen = plan(design, model=model, n_gpus=n_gpus, seq_len=seq_len, global_batch="1024")
    try:
        text = TARGETS["megatron"](chosen).text
    except InputError:  # test_export.py has what is said
        reject()
    known = read(text)
    assert plan(dict(known.design), **known.inputs).design == chosen.design
    assert {name: known.inputs[name] for name in ("model", "n_gpus", "seq_len", "global_batch")} == {
        "model": model,
        "n_gpus": n_gpus,
        "seq_len": seq_len,
        "global_batch": "1024",
    }


def test_what_is_set_settles_what_the_file_leaves_open() -> None:
    text = (
        BASE.replace("--nnodes 4", "--nnodes 1")
        + " --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2"
    )
    assert "1 node of 8 GPUs, which tp x pp x cp = 16 does not divide; --set n_gpus=N" in refused(text)
    assert read_plan(text, "args.txt", problem(n_gpus="32")).design["pp"] == "2"
    several = BASE.replace("--vocab-size 128256", "").replace("--max-position-embeddings 8192", "")
    chosen = read_plan(several, "args.txt", problem(model="llama-3.1-8b"))
    assert chosen.inputs["model"] == "llama-3.1-8b"
    with pytest.raises(InputError, match="--set model=llama-2-7b contradicts the arguments"):
        read_plan(several, "args.txt", problem(model="llama-2-7b"))


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        (
            "--nproc-per-node 8 --nnodes $NNODES",
            "--nnodes $?: its value is not in the file; add --set n_gpus=N",
        ),
        ("--nproc-per-node 8 --nnodes $((8/0))", "its value is not in the file"),
        ("--nproc-per-node 8 --nnodes $((9**9**9))", "its value is not in the file"),
        ("--nproc-per-node 8 --nnodes 999999999999", "expected a whole number above 0 of at most 7 digits"),
        ("--nproc-per-node 8 --nnodes 0", "--nnodes 0: expected a whole number above 0"),
        ("--nproc-per-node 8 --nnodes four", "--nnodes four: expected a whole number above 0"),
        ("--nnodes --nproc-per-node 8", "--nnodes: it has no value"),
        ("--nproc-per-node 8 --nnodes 1:4", "--nnodes 1:4: a range of nodes, not one number"),
        ("--nproc-per-node gpu --nnodes 4", "--nproc-per-node gpu: expected a whole number above 0"),
        ("--nproc-per-node $GPUS --nnodes 4", "--nproc-per-node $?: its value is not in the file"),
        ("--nproc-per-node $GPUS --nnodes 4 --ntasks-per-node 1", "--nproc-per-node $?: its value is not"),
        ("--num_gpus 8 --hostfile hosts", "the number of nodes is in another file"),
    ],
)
def test_a_number_of_gpus_that_cannot_be_read_must_be_given(launcher: str, said: str) -> None:
    text = BASE.replace("--nproc-per-node 8 --nnodes 4", launcher)
    assert text != BASE
    told = refused(text)
    assert said in told
    assert told.endswith("; add --set n_gpus=N")
    known = read_plan(text, "args.txt", problem(n_gpus="64"))
    assert known.inputs["n_gpus"] == "64"


@pytest.mark.parametrize(
    ("launcher", "gpus"),
    [
        ("--nproc-per-node 8 --nnodes 4:4", "32"),
        ("--nproc-per-node 8", "8"),
        ("--nproc-per-node $G --gpus-per-node a100:8 --nnodes $N --nodes 2", "16"),
    ],
)
def test_a_number_of_gpus_in_other_words(launcher: str, gpus: str) -> None:
    assert read(BASE.replace("--nproc-per-node 8 --nnodes 4", launcher)).inputs["n_gpus"] == gpus


@pytest.mark.parametrize("depth", [33, 3000])
def test_defaults_nested_too_deep(depth: int) -> None:
    def nested(levels: int) -> str:
        return "TP=" + "${A:-" * levels + "2" + "}" * levels + f"\n{BASE} --tensor-model-parallel-size $TP"

    assert "args.txt:1: more than 32 defaults ${A:-...} stand inside each other" in refused(nested(depth))
    assert read(nested(32)).design["tp"] == "2"


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    given = plan({"sharding": "fsdp2"})
    job = TARGETS["torchtitan"](given).text
    assert read(job, "job.txt").design == read(job, "job.toml").design
    saved = TARGETS["json"](given).text
    assert read(saved, "plan.txt").design == read(saved, "plan.json").design
    config = tmp_path / "model.txt"
    config.write_text('{"model_type": "lama"}', encoding="utf-8")
    with pytest.raises(InputError, match=r"model.txt:1: model_type: found"):
        model_row(config)
    config.write_text("[model]\nlayers = 3\n", encoding="utf-8")
    with pytest.raises(InputError, match="or a launch line of Megatron-LM, but found neither"):
        model_row(config)
    config.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"found an empty file, expected a config.json, or a launch line"):
        model_row(config)


@pytest.mark.parametrize(
    ("target", "sharding"), [("megatron", "distributed-optimizer"), ("deepspeed", "zero1")]
)
def test_a_plan_in_fp16_is_read_back(target: str, sharding: str, tmp_path: Path) -> None:
    given = {"hardware": "v100-sxm2-32", "precision": "fp16", "framework": target, "attention": "unfused"}
    given |= {"model": "gpt-3-175b", "n_gpus": "64", "global_batch": "64", "seq_len": "2048"}
    space = load("training", given)
    texts = {d.name: str(d.values[0]) for d in space.dimensions} | DESIGN
    texts |= {
        "tp": "8",
        "pp": "8",
        "format": "fp16",
        "sharding": sharding,
        "extra_layers": "0",
        "overlap_dp": "true",
    }
    design = {d.name: value_of(space, d.name, texts[d.name]) for d in space.dimensions}
    assert broken_rule(space, design) is None
    written = TARGETS[target](Plan.of(space, design))
    path = tmp_path / "plan.json"
    path.write_text(written.text, encoding="utf-8")
    text, file = written.text, path
    if target == "deepspeed":
        assert json.loads(text)["fp16"] == {"enabled": True}
        assert written.starter is not None
        text, file = written.starter(path.name), path.with_suffix(".sh")
    else:
        file = path.with_suffix(".sh")
    assert "--fp16" in text
    assert "--bf16" not in text
    known = read_plan(text, str(file), load("training"))
    assert (known.design["format"], known.inputs["precision"]) == ("fp16", "fp16")
    assert known.inputs["hardware"] == "v100-sxm2-32"
    again = load("training", known.inputs)
    back = read_design(again, known, {})
    assert back == design
    assert broken_rule(again, back) is None
