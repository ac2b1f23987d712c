"""A serving plan in whole numbers and names of formats, and what every engine says of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dse.errors import InputError
from dse.spaces.remarks import one_line, remark_line
from dse.study.exports import Plan

from .repositories import checkpoint
from .script import Asked

__all__ = ["Deployment", "cannot"]

TOLD = frozenset(
    "tp pp ep attention_dp replicas batch weights activations kv chunk draft_length disaggregated prefill_ratio graphs hardware".split()
)
"""Dimensions that every engine is told, or that a remark tells."""


def cannot(engine: str, plan: Plan, name: str, why: str) -> InputError:
    """The error that an engine cannot express what a plan has in the dimension or input ``name``."""
    return InputError(f"{engine} cannot express {name}={plan.texts.get(name, '?')}: {why}")


def _value(plan: Plan, name: str) -> object:
    return plan.design.get(name, plan.inputs.get(name))


def _whole(plan: Plan, name: str, default: int) -> int:
    value = _value(plan, name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise InputError(f"{name} must be a whole number, but is {plan.texts.get(name, value)!r}")
    return int(value)


def _share(plan: Plan, name: str, default: float) -> float:
    value = _value(plan, name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def _name(plan: Plan, name: str, default: str) -> str:
    value = _value(plan, name)
    return value if isinstance(value, str) else default


def _cell(plan: Plan, row: str, column: str) -> float:
    value: object = plan.rows.get(row, {}).get(column)
    return float(value) if isinstance(value, bool | int | float) else 0.0


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a plan starts: instances of ``tp * attention_dp * pp`` GPUs, and how each of them schedules.

    ``batch`` are the sequences decoded together on one instance, ``chunk`` the prefill tokens of a step (0: whole
    prompts), ``prefill_ratio`` the instances that process prompts for each one that decodes, ``reserve`` the share of memory that is left free, ``node`` the GPUs of a machine (0: not known).
    """

    model: str
    draft: str
    tp: int
    pp: int
    ep: int
    attention_dp: int
    replicas: int
    batch: int
    weights: str
    activations: str
    kv: str
    chunk: int
    draft_length: int
    disaggregated: bool
    prefill_ratio: float
    graphs: bool
    context: int
    block: int
    reserve: float
    prefix: bool
    experts: bool
    node: int
    half: bool

    @classmethod
    def of(cls, plan: Plan) -> Deployment:
        """The deployment of a plan; what a plan has not is as engines have it by default.

        Raises:
            InputError: a number is none or not whole, or the model is unknown.
        """
        model = _name(plan, "model", "")
        if not model:
            raise InputError("the plan needs a model, but has none")
        context = _whole(plan, "max_context", 0) or math.ceil(
            _share(plan, "prompt_len", 0) + _share(plan, "output_len", 0)
        )
        weights = _name(plan, "weights", "bf16")
        half = weights == "fp16" or _lacks_bf16(plan)
        return cls(
            model=model,
            draft=_name(plan, "draft", ""),
            tp=_whole(plan, "tp", 1),
            pp=_whole(plan, "pp", 1),
            ep=_whole(plan, "ep", 1),
            attention_dp=_whole(plan, "attention_dp", 1),
            replicas=_whole(plan, "replicas", 1),
            batch=_whole(plan, "batch", 1),
            weights=weights,
            activations=_activations(_name(plan, "activations", "bf16"), weights, half=half),
            kv=_name(plan, "kv", "bf16"),
            chunk=_whole(plan, "chunk", 0),
            draft_length=_whole(plan, "draft_length", 0),
            disaggregated=_value(plan, "disaggregated") is True,
            prefill_ratio=_share(plan, "prefill_ratio", 1),
            graphs=_value(plan, "graphs") is not False,
            context=context,
            block=_whole(plan, "kv_block", 0),
            reserve=_share(plan, "memory_reserve", 0.1),
            prefix=_share(plan, "prefix_hit", 0) > 0,
            experts=_cell(plan, "model", "experts") > 0,
            node=int(_cell(plan, "hardware", "node")),
            half=half,
        )

    @property
    def gpus(self) -> int:
        """GPUs of one instance."""
        return self.tp * self.attention_dp * self.pp

    @property
    def copies(self) -> int:
        """Instances; with ones for prompts beside them, those that decode: enough to share one for prompts."""
        shared = math.ceil(1 / self.prefill_ratio) if self.disaggregated and self.prefill_ratio > 0 else 1
        return max(self.replicas, shared)

    @property
    def prefilling(self) -> int:
        """Instances for prompts only."""
        return math.ceil(self.copies * self.prefill_ratio) if self.disaggregated else 0

    @property
    def nodes(self) -> int:
        """Machines of one instance; those of a rack-scale domain have 4 GPUs, others at most 8."""
        each = 4 if self.node > 16 else min(self.node or 8, 8)
        return max(1, -(-self.gpus // each))

    @property
    def sequences(self) -> int:
        """Sequences of one group of ranks that attend together."""
        return -(-self.batch // self.attention_dp)

    @property
    def step_tokens(self) -> int:
        """Tokens of a step of such a group: a chunk of a prompt, and one token and its drafts of each sequence.

        Without chunks, a step has room for the longest prompt.
        """
        return (self.chunk or self.context) + self.sequences * (1 + self.draft_length)

    @property
    def sixteen(self) -> str:
        """The 16-bit format of the model: bfloat16, or float16 where weights are so or the hardware has no other."""
        return "float16" if self.half else "bfloat16"

    def heading(self, plan: Plan) -> Iterator[str]:
        """Comments that every engine's script begins with."""
        hardware = plan.texts.get("hardware", "GPUs")
        many = _instances(self.copies)
        if self.disaggregated:
            what = (
                f"{self.gpus * (self.copies + self.prefilling)} x {hardware}: {_instances(self.prefilling)} of {self.gpus}"
                f" for prompts and {many} of {self.gpus} to decode, batch={self.batch} on each of these"
            )
        else:
            what = f"{many} of {self.gpus} x {hardware}, batch={self.batch} on each"
        yield one_line(f"# {self.model}: {what}")
        yield remark_line(_shown(plan))
        if self.replicas == 1 and (spare := self.spare(plan)) > 1:
            stands = "these stand" if self.disaggregated else "it stands"
            times = f"{spare} times as many" if self.disaggregated else f"{spare}"
            yield f"# Without a request rate {stands} for all instances: n_gpus={plan.texts['n_gpus']} are enough for {times}."
        if self.disaggregated and self.copies + self.prefilling > 2:
            yield f"# Start it with REPLICA=0 to {self.copies + self.prefilling - 1} on GPUs of their own, those for prompts and those to decode behind a load balancer each."
        elif self.replicas > 1:
            yield f"# replicas={self.replicas}: start it with REPLICA=0 to {self.replicas - 1} on GPUs of their own, behind a load balancer."

    def spare(self, plan: Plan) -> int:
        """How many times the GPUs are enough for these instances; 0 where that is not asked."""
        if _share(plan, "request_rate", 0) > 0:
            return 0
        return _whole(plan, "n_gpus", 0) // (self.gpus * (self.copies + self.prefilling))

    def notes(self, engine: str, plan: Plan) -> tuple[str, ...]:
        """Remarks for the user: what was predicted for another engine, and how long a sequence may be."""
        predicted = _name(plan, "engine", engine)
        other = (
            (f"times were predicted for engine={predicted}, not for {engine}",) if predicted != engine else ()
        )
        if _value(plan, "max_context") == 0:
            return (
                *other,
                f"sequences of more than {self.context} tokens will be refused; max_context says how long they may be",
            )
        return other

    def apart(self) -> str:
        """How many instances process prompts for those that decode; or that the same ones do both."""
        if not self.disaggregated:
            return "# disaggregated=false: the same GPUs process prompts and decode."
        return f"# disaggregated=true: prefill_ratio={self.prefill_ratio:g} instances for prompts for each one that decodes."

    def place(self) -> Asked:
        """Where the checkpoint is."""
        return _asked("MODEL", self.model)

    def draft_place(self) -> Asked:
        """Where that of the draft model is."""
        return _asked("DRAFT", self.draft)

    def untold(self, plan: Plan) -> list[str]:
        """Comments on dimensions that no engine is told."""
        others = [
            f"{name}={plan.texts.get(name, value)}" for name, value in plan.design.items() if name not in TOLD
        ]
        return [one_line(f"# Not for the engine: {', '.join(others)}.")] if others else []


def _instances(number: int) -> str:
    return f"{number} instance{'s' * (number != 1)}"


def _asked(variable: str, model: str) -> Asked:
    return Asked(variable, checkpoint(model), f"set it to the checkpoint of {model}")


def _lacks_bf16(plan: Plan) -> bool:
    """Whether the hardware has fp16 only; not where it is not known."""
    row = plan.rows.get("hardware", {})
    return not row.get("bf16") and bool(row.get("fp16"))


def _activations(named: str, weights: str, *, half: bool) -> str:
    """The catalogue's format of activations: fp4 is that of the weights, and bf16 stands for both 16-bit formats."""
    if named == "bf16":
        return "fp16" if half else "bf16"
    if (named, weights) in {("fp4", "nvfp4"), ("fp4", "mxfp4"), ("fp8", "mxfp8")}:
        return weights
    return named


def _shown(plan: Plan) -> Mapping[str, str]:
    """The design, the model, the hardware, and the inputs that differ from the defaults."""
    wanted = {"model", "hardware"} | plan.given | set(plan.design)
    if _value(plan, "disaggregated") is not True:
        wanted.discard("prefill_ratio")
    return {name: text for name, text in plan.texts.items() if name in wanted}
