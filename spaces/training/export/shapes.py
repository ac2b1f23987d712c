"""A plan in whole numbers, and what frameworks ask of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dse.errors import InputError
from dse.problem import Problem
from dse.study.exports import Plan

__all__ = ["Shape", "cannot", "cell", "flag", "given_number", "predicted_format", "text", "whole"]

_EDGES = {"even": (0, 0), "embedding": (1, 0), "loss": (0, 1), "both": (1, 1)}


def cannot(framework: str, plan: Plan, name: str, why: str) -> InputError:
    """The error that a framework cannot express what a plan has in the dimension or input ``name``."""
    return InputError(f"{framework} cannot express {name}={plan.texts.get(name, '?')}: {why}")


def whole(plan: Plan, name: str, default: int | None = None) -> int:
    """A dimension or input that is a whole number.

    Raises:
        InputError: the plan has none (and there is no ``default``), or it has a fraction.
    """
    value = plan.design.get(name, plan.inputs.get(name, default))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(
            f"the plan needs a number {name!r}, but has {'none' if value is None else repr(value)}"
        )
    if value != int(value):
        raise InputError(f"{name} must be a whole number, but is {value:g}")
    return int(value)


def flag(plan: Plan, name: str) -> bool:
    """A dimension or input that is true or false; false where the plan has none."""
    return plan.design.get(name, plan.inputs.get(name, False)) is True


def text(plan: Plan, name: str, default: str) -> str:
    """A dimension or input that is a text."""
    value = plan.design.get(name, plan.inputs.get(name, default))
    return value if isinstance(value, str) else default


def given_number(problem: Problem, name: str) -> int | None:
    """A whole number that was set for an input; None where it has its default."""
    known = problem.inputs.get(name)
    named = {given.removeprefix("inputs.") for given, _ in problem.overrides}
    if known is None or name not in named or not isinstance(known.value, float):
        return None
    return int(known.value) if known.value.is_integer() and known.value >= 1 else None


def predicted_format(problem: Problem, name: str) -> tuple[str, list[str]]:
    """The number format that stands for one in the space, and what is to be said of it."""
    known = [str(v) for d in problem.dimensions if d.name == "format" for v in d.values]
    instead = {"fp16": "bf16", "mxfp8": "fp8"}.get(name)
    if not known or name in known or instead not in known:
        return name, []
    return instead, [f"{name} is predicted as {instead}"]


def cell(row: Mapping[str, object], column: str) -> int:
    """A whole number of a model's row; a flag counts as 0 or 1, a missing cell as 0."""
    value = row.get(column)
    return int(value) if isinstance(value, (bool, int, float)) else 0


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a plan: ``embedding`` and ``loss`` are 1 where they count as a layer of the pipeline."""

    n_gpus: int
    global_batch: int
    seq_len: int
    tp: int
    pp: int
    chunks: int
    cp: int
    ep: int
    etp: int
    micro_batch: int
    sequence_parallel: bool
    embedding: int
    loss: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    experts: int
    mla: bool

    @classmethod
    def of(cls, plan: Plan) -> Shape:
        """The sizes of ``plan``.

        Raises:
            InputError: one of them is missing or no whole number.
        """
        model = plan.rows.get("model")
        if model is None:
            raise InputError("the plan has no model, whose sizes are written")
        for name, same in (("extra_layers", 0), ("kv_share", 1), ("shorter", 1)):
            if whole(plan, name, same) != same:
                raise InputError(
                    f"the plan changes the model ({name}={plan.texts[name]}), which has no configuration yet; give the "
                    "changed model as a config.json by --set model=FILE and search again"
                )
        tp = whole(plan, "tp", 1)
        embedding, loss = _EDGES.get(text(plan, "edges", "even"), (0, 0))
        return cls(
            n_gpus=whole(plan, "n_gpus"),
            global_batch=whole(plan, "global_batch"),
            seq_len=whole(plan, "seq_len"),
            tp=tp,
            pp=whole(plan, "pp", 1),
            chunks=whole(plan, "chunks", 1),
            cp=whole(plan, "cp", 1),
            ep=whole(plan, "ep", 1),
            etp=tp if flag(plan, "expert_tp") else 1,
            micro_batch=whole(plan, "micro_batch", 1),
            sequence_parallel=flag(plan, "sequence_parallel"),
            embedding=embedding,
            loss=loss,
            layers=cell(model, "layers"),
            heads=cell(model, "heads"),
            kv_heads=cell(model, "kv_heads"),
            hidden=cell(model, "hidden"),
            experts=cell(model, "experts"),
            mla=bool(cell(model, "mla")),
        )

    @property
    def ranks(self) -> int:
        """GPUs that hold one copy of the model."""
        return self.tp * self.pp * self.cp

    @property
    def dp(self) -> int:
        """Data parallel size."""
        return self.n_gpus // self.ranks

    @property
    def micro_batches(self) -> int:
        """Micro-batches of a step on each data parallel rank."""
        return self.global_batch // (self.micro_batch * self.dp)

    def faults(self) -> Iterator[tuple[str, str]]:
        """What any of the frameworks refuses: the dimension or input to blame, and why."""
        if self.n_gpus % self.ranks:
            yield "n_gpus", f"{self.n_gpus} GPUs are not divisible by tp x pp x cp = {self.ranks}"
            return
        if self.global_batch % (self.micro_batch * self.dp):
            yield (
                "global_batch",
                (
                    f"a global batch of {self.global_batch} is not divisible by micro_batch x data parallel size = "
                    f"{self.micro_batch} x {self.dp}"
                ),
            )
        if self.heads % self.tp:
            yield "tp", f"{self.heads} attention heads are not divisible by {self.tp}"
        if not self.mla and self.kv_heads % self.tp:
            yield "tp", f"{self.kv_heads} key-value heads are not divisible by {self.tp}"
        if self.cp > 1 and self.seq_len % (2 * self.cp):
            yield "cp", f"a sequence of {self.seq_len} tokens is not divisible by 2 x cp = {2 * self.cp}"
        if self.sequence_parallel and self.tp > 1 and self.seq_len // self.cp % self.tp:
            yield (
                "sequence_parallel",
                f"{self.seq_len // self.cp} tokens of a sequence are not divisible by tp = {self.tp}",
            )
        yield from self._layer_faults()
        if self.ep > 1 and not self.experts:
            yield "ep", "the model has no experts"
        elif self.experts % self.ep:
            yield "ep", f"{self.experts} experts are not divisible by {self.ep}"
        elif self.experts and self.n_gpus % (self.etp * self.ep * self.pp):
            yield (
                "ep",
                f"{self.n_gpus} GPUs are not divisible by expert tp x ep x pp = {self.etp * self.ep * self.pp}",
            )

    def _layer_faults(self) -> Iterator[tuple[str, str]]:
        units = self.layers + self.embedding + self.loss
        counted = " and ".join(
            [name for name, counts in (("embedding", self.embedding), ("loss", self.loss)) if counts]
        )
        told = f"{units} layers (with {counted})" if counted else f"{units} layers"
        if units % self.pp:
            yield "pp", f"{told} are not divisible by pp = {self.pp}"
        elif units % (self.pp * self.chunks):
            yield "chunks", f"{told} are not divisible by pp x chunks = {self.pp} x {self.chunks}"
        if self.chunks > 1 and self.micro_batches < self.pp:
            yield (
                "chunks",
                f"{self.micro_batches} micro-batches are fewer than pp = {self.pp}, as interleaving asks",
            )

    @property
    def group(self) -> int:
        """Micro-batches that a chunk of an interleaved schedule runs in one go: the fewest that Megatron accepts.

        At least pp, and what is left over is none or at least pp (``megatron/core/pipeline_parallel/schedules.py``).
        """
        count = self.micro_batches
        sizes = range(self.pp, max(count, self.pp) + 1)
        return next((size for size in sizes if not count % size or count % size >= self.pp), self.pp)
