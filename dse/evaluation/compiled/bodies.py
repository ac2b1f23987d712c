"""What the loops do: count what is outside or illegal, search the legal designs, or look for near misses."""

from __future__ import annotations

from dataclasses import dataclass

from dse.evaluation.compiled.coder import Coder, double
from dse.evaluation.compiled.demands import Condition, Demands, Requirement
from dse.evaluation.compiled.looking import look
from dse.evaluation.compiled.loops import Loops
from dse.evaluation.verdict import GATE
from dse.expressions import Kind

__all__ = ["NOTHING_MORE", "SET_BITS", "SET_FACTOR", "Wanted", "count", "end_of", "miss", "search"]

SET_BITS = 12
"""The table of sets of missed constraints has 2**SET_BITS slots of three words: set, nearness, position."""

SET_FACTOR = 0x9E3779B97F4A7C15
"""A set times this has its slot in its highest bits."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a search is to keep beside the front: the ``top`` best of one objective, the positions of all ties."""

    top: int = 0
    objective: int = 0
    ties: bool = False


NOTHING_MORE = Wanted()
"""The front alone."""


def count(loops: Loops, demands: Demands) -> None:
    """Count designs by the first condition that they break, in the array ``broken``.

    The state is the number of the first condition broken so far. A turn ends as soon as no condition before that one is
    undecided, since nothing inside can change what it counts as.
    """
    coder = loops.coder
    conditions = demands.conditions
    levels = [max(1, coder.level(c.support)) for c in conditions]
    state = str(len(conditions))
    for level in range(1, loops.depth + 1):
        own = [at for at, found in enumerate(levels) if found == level]
        if not own:
            continue
        first = str(len(conditions))
        for at in reversed(own):
            first = coder.put(
                level, f"select i1 {_holds(coder, conditions[at], level)}, i64 {first}, i64 {at}"
            )
        state = coder.put(level, f"call i64 @llvm.smin.i64(i64 {state}, i64 {first})")
        settled = [at for at in range(len(levels)) if max(levels[:at], default=0) <= level]
        ended = coder.put(level, f"icmp sle i64 {state}, {max(settled)}")
        yes, no = loops.branch(level, ended)
        loops.label(level, yes)
        place = loops.element(level, loops.read(level, "broken", "ptr"), state, "i64")
        was = coder.put(level, f"load i64, ptr {place}")
        now = coder.put(level, f"add i64 {was}, {loops.weight(level)}")
        coder.lines[level].append(f"store i64 {now}, ptr {place}")
        loops.goto(level, loops.latch(level))
        loops.label(level, no)


def _holds(coder: Coder, condition: Condition, level: int) -> str:
    """Whether a condition is true and defined."""
    if not condition.sides:
        return _true(coder, condition.node, level)
    union = "false"
    for side in condition.sides:
        held = "true"
        for dimension, allowed in side.allowed:
            held = coder.put(level, f"and i1 {held}, {coder.load(allowed, 1 << dimension)}")
        for node in side.nodes:
            held = coder.put(level, f"and i1 {held}, {_true(coder, node, level)}")
        union = coder.put(level, f"or i1 {union}, {held}")
    return union


def _true(coder: Coder, node: int, level: int) -> str:
    found = coder.value(node)
    if found.undefined is None:
        return found.text
    defined = coder.put(level, f"icmp eq i8 {found.undefined}, 0")
    return coder.put(level, f"and i1 {found.text}, {defined}")


def _cuts(loops: Loops, demands: Demands) -> None:
    """End a turn as soon as a condition is broken; what that loses is counted elsewhere."""
    coder = loops.coder
    found = [(max(1, coder.level(c.support)), at, c) for at, c in enumerate(demands.conditions)]
    for level, _, condition in sorted(found, key=lambda item: item[:2]):
        yes, no = loops.branch(level, _holds(coder, condition, level))
        loops.label(level, no)
        loops.goto(level, loops.latch(level))
        loops.label(level, yes)


def end_of(coder: Coder, demands: Demands) -> int:
    """The level at which it is decided whether a design fails, and which requirements it misses."""
    facts, objectives = demands.facts, demands.problem.objectives
    masks = [c.support for c in demands.conditions] + [r.support for r in demands.requirements]
    masks += [facts.supports[n] for n in demands.fallible]
    masks += [facts.supports[objectives[at].node] for at in demands.unbounded]
    return max([1, *(coder.level(mask) for mask in masks)])


def search(loops: Loops, demands: Demands, wanted: Wanted, end: int) -> None:
    """Judge every legal design: count what fails and what each requirement loses, hand over what may be on the front."""
    coder = loops.coder
    _cuts(loops, demands)
    _failures(loops, demands, end)
    _losses(loops, demands, end)
    loops.bump(end, "feasible", loops.weight(end))
    problem = demands.problem
    costs = [_cost(loops, demands, at) for at in range(len(problem.objectives))]
    levels = [max(coder.level(demands.facts.supports[o.node]), end) for o in problem.objectives]
    last = loops.depth
    if wanted.top:
        _best(loops, costs[wanted.objective], last)
    look(loops, costs, levels, end, ties=wanted.ties)


def _cost(loops: Loops, demands: Demands, at: int) -> str:
    """An objective to minimize, without a negative zero."""
    coder, objective = loops.coder, demands.problem.objectives[at]
    level = coder.level(demands.facts.supports[objective.node])
    found, range_ = coder.value(objective.node).text, demands.facts.ranges[objective.node]
    if objective.sign < 0:
        found = coder.put(level, f"fneg double {found}")
    return found if not range_.zero else coder.put(level, f"fadd double {found}, {double(0.0)}")


def _failing(loops: Loops, demands: Demands, end: int) -> str | None:
    """Whether an objective or a bound is no number, or an objective is unbounded; None: never."""
    coder, failing = loops.coder, None
    signs = []
    for node in demands.fallible:
        found = coder.value(node)
        if found.undefined is not None:
            signs.append(coder.put(end, f"icmp ne i8 {found.undefined}, 0"))
        if demands.facts.ranges[node].nan and demands.facts.graph[node].type.kind is Kind.NUMBER:
            signs.append(coder.put(end, f"fcmp uno double {found.text}, {found.text}"))
    for at in demands.unbounded:
        objective = demands.problem.objectives[at]
        best = double(-objective.sign * float("inf"))
        signs.append(coder.put(end, f"fcmp oeq double {coder.value(objective.node).text}, {best}"))
    for sign in signs:
        failing = sign if failing is None else coder.put(end, f"or i1 {failing}, {sign}")
    return failing


def _failures(loops: Loops, demands: Demands, end: int) -> None:
    """Count failed designs, and hand over those of the lowest positions."""
    failing = _failing(loops, demands, end)
    if failing is None:
        return
    coder = loops.coder
    yes, no = loops.branch(end, failing)
    loops.label(end, yes)
    loops.bump(end, "failed", loops.weight(end))
    low = coder.put(end, f"icmp slt i64 %pos{end}, {loops.read(end, 'failures.below')}")
    new, done = loops.branch(end, low, likely=False)
    loops.label(end, new)
    loops.emit(end, "failures", [("i64", f"%pos{end}")])
    loops.goto(end, loops.latch(end))
    loops.label(end, done)
    loops.goto(end, loops.latch(end))
    loops.label(end, no)


def _missed(loops: Loops, demands: Demands, requirement: Requirement, end: int) -> str:
    """Whether a design that has not failed misses a requirement."""
    coder = loops.coder
    if requirement.bound is None:
        objective = demands.problem.objectives[requirement.objective]
        worst = double(objective.sign * float("inf"))
        return coder.put(end, f"fcmp oeq double {coder.value(objective.node).text}, {worst}")
    bound = requirement.bound
    lhs = coder.value(bound.lhs).text
    if bound.op == "holds":
        return coder.put(end, f"xor i1 {lhs}, true")
    level = max(1, coder.level(requirement.support))
    rhs = coder.value(bound.rhs).text
    broken = {"<=": "ugt", "<": "uge", ">=": "ult", ">": "ule", "==": "une"}[bound.op]
    return coder.put(level, f"fcmp {broken} double {lhs}, {rhs}")


def _losses(loops: Loops, demands: Demands, end: int) -> None:
    """Count what each requirement loses, alone and after those before it."""
    coder, requirements = loops.coder, demands.requirements
    if not requirements:
        return
    missed = [_missed(loops, demands, r, end) for r in requirements]
    any_of = missed[0]
    for one in missed[1:]:
        any_of = coder.put(end, f"or i1 {any_of}, {one}")
    yes, no = loops.branch(end, any_of)
    loops.label(end, yes)
    weight = loops.weight(end)
    before = "false"
    for requirement, one in zip(requirements, missed, strict=True):
        lost = coder.put(end, f"select i1 {one}, i64 {weight}, i64 0")
        loops.bump(end, f"alone.{requirement.line}", lost)
        first = coder.put(end, f"select i1 {before}, i64 0, i64 {lost}")
        loops.bump(end, f"in_order.{requirement.line}", first)
        before = coder.put(end, f"or i1 {before}, {one}")
    loops.goto(end, loops.latch(end))
    loops.label(end, no)


def _best(loops: Loops, cost: str, level: int) -> None:
    """Hand over designs that may be among the best of one objective."""
    coder = loops.coder
    limit = loops.read(level, "best.cost", "double")
    less = coder.put(level, f"fcmp olt double {cost}, {limit}")
    same = coder.put(level, f"fcmp oeq double {cost}, {limit}")
    early = coder.put(level, f"icmp slt i64 %pos{level}, {loops.read(level, 'best.position')}")
    enters = coder.put(level, f"or i1 {less}, {coder.put(level, f'and i1 {same}, {early}')}")
    yes, no = loops.branch(level, enters, likely=False)
    loops.label(level, yes)
    loops.emit(level, "best", [("i64", f"%pos{level}"), ("double", cost)])
    loops.goto(level, no)
    loops.label(level, no)


def miss(loops: Loops, demands: Demands) -> None:
    """Hand over designs that miss constraints by least: in all, and of each smallest set of constraints.

    The loops go no deeper than the constraints need. Looked for when no design is feasible. The set's best so far stands in a table of a few thousand slots, each for the
    last set that took it, so that any number of sets will do.
    """
    coder, end = loops.coder, loops.depth
    _cuts(loops, demands)
    failing = _failing(loops, demands, end)
    out = loops.latch(end)
    if failing is not None:
        _leave(loops, end, failing, out)
    nearness, mask = double(0.0), "0"
    for requirement in demands.requirements:
        missed = _missed(loops, demands, requirement, end)
        if requirement.bound is None:
            _leave(loops, end, missed, out)
            continue
        miss_by = _nearness(loops, requirement, missed, end)
        nearness = coder.put(end, f"fadd double {nearness}, {miss_by}")
        bit = coder.put(end, f"select i1 {missed}, i64 {_signed(1 << requirement.line)}, i64 0")
        mask = coder.put(end, f"or i64 {mask}, {bit}")
    met = coder.put(end, f"icmp eq i64 {mask}, 0")
    _leave(loops, end, met, out)
    _hand_over(loops, nearness, mask, end)


def _hand_over(loops: Loops, nearness: str, mask: str, end: int) -> None:
    coder = loops.coder

    def beats(limit: str, position: str) -> str:
        less = coder.put(end, f"fcmp olt double {nearness}, {limit}")
        same = coder.put(end, f"fcmp oeq double {nearness}, {limit}")
        early = coder.put(end, f"icmp slt i64 %pos{end}, {position}")
        return coder.put(end, f"or i1 {less}, {coder.put(end, f'and i1 {same}, {early}')}")

    nearest = beats(loops.read(end, "near.cost", "double"), loops.read(end, "near.position"))
    size = coder.put(end, f"call i64 @llvm.ctpop.i64(i64 {mask})")
    fewest = loops.read(end, "near.fewest")
    fewer = coder.put(end, f"icmp slt i64 {size}, {fewest}")
    as_few = coder.put(end, f"icmp eq i64 {size}, {fewest}")
    hashed = coder.put(end, f"mul i64 {mask}, {_signed(SET_FACTOR)}")
    slot = coder.put(end, f"lshr i64 {hashed}, {64 - SET_BITS}")
    words = coder.put(end, f"mul i64 {slot}, 3")
    base = loops.element(end, loops.read(end, "near.sets", "ptr"), words, "i64")
    known = coder.put(end, f"load i64, ptr {base}")
    limit = coder.put(end, f"load double, ptr {loops.element(end, base, '1', 'double')}")
    position = coder.put(end, f"load i64, ptr {loops.element(end, base, '2', 'i64')}")
    other = coder.put(end, f"icmp ne i64 {known}, {mask}")
    better = coder.put(end, f"or i1 {other}, {beats(limit, position)}")
    better = coder.put(end, f"and i1 {as_few}, {better}")
    enters = coder.put(end, f"or i1 {nearest}, {coder.put(end, f'or i1 {fewer}, {better}')}")
    yes, no = loops.branch(end, enters, likely=False)
    loops.label(end, yes)
    loops.emit(end, "near", [("i64", f"%pos{end}")])
    loops.goto(end, no)
    loops.label(end, no)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _leave(loops: Loops, level: int, condition: str, out: str) -> None:
    yes, no = loops.branch(level, condition)
    loops.label(level, yes)
    loops.goto(level, out)
    loops.label(level, no)


def _nearness(loops: Loops, requirement: Requirement, missed: str, end: int) -> str:
    """What a missed bound adds to the nearness, by the operations of the judge; 0 where it holds."""
    share = _share(loops, requirement, missed, end)
    if not requirement.first:
        return share
    coder = loops.coder
    more = coder.put(end, f"fadd double {share}, {double(1.0)}")
    weighed = coder.put(end, f"fmul double {more}, {double(GATE)}")
    return coder.put(end, f"select i1 {missed}, double {weighed}, double {double(0.0)}")


def _share(loops: Loops, requirement: Requirement, missed: str, end: int) -> str:
    """Violation over the size of the bound; 0 where it holds."""
    coder, bound = loops.coder, requirement.bound
    assert bound is not None
    zero, one = double(0.0), double(1.0)
    if bound.op == "holds":
        return coder.put(end, f"select i1 {missed}, double {one}, double {zero}")
    lhs, rhs = coder.value(bound.lhs).text, coder.value(bound.rhs).text
    size = coder.put(end, f"call double @llvm.fabs.f64(double {rhs})")
    positive = coder.put(end, f"fcmp ogt double {size}, {zero}")
    finite = coder.put(end, f"fcmp olt double {size}, {double(float('inf'))}")
    usable = coder.put(end, f"and i1 {positive}, {finite}")
    scale = coder.put(end, f"select i1 {usable}, double {size}, double {one}")
    if bound.op == "==":
        difference = coder.put(end, f"fsub double {lhs}, {rhs}")
        violation = coder.put(end, f"call double @llvm.fabs.f64(double {difference})")
    else:
        pair = (lhs, rhs) if bound.op in ("<=", "<") else (rhs, lhs)
        excess = coder.put(end, f"fsub double {pair[0]}, {pair[1]}")
        real = coder.put(end, f"fcmp ogt double {excess}, {zero}")
        violation = coder.put(end, f"select i1 {real}, double {excess}, double {double(5e-324)}")
    violation = coder.put(end, f"select i1 {missed}, double {violation}, double {zero}")
    return coder.put(end, f"fdiv double {violation}, {scale}")
