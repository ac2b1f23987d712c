"""What is known of the reference problems, from elsewhere: sizes of fronts and numbers of designs that attain them."""

from __future__ import annotations

from tests.bench.cases import Outcome

# name -> designs, vectors of the front, designs that attain them; published with the problems
FRONTS = {
    "camera_480": (480, 38, 38),
    "camera_1e9": (1_006_632_960, 9120, 9120),
    "training_1e5": (93_312, 29, 29),
    "training_1e7": (14_929_920, 195, 204),
    "training_1e8": (172_032_000, 466, 472),
    "training_1e9": (2_211_840_000, 658, 737),
    "training_1e10": (8_847_360_000, 672, 773),
    "training_1e11": (176_947_200_000, 1044, 1282),
    "training_1e12": (1_061_683_200_000, 1326, 1599),
    "training_1e13": (9_654_239_232_000, 3637, 3950),
}
# one and two objectives
FEWER = {
    ("training_1e12", 1): (1_061_683_200_000, 1, 2),
    ("training_1e12", 2): (1_061_683_200_000, 115, 118),
    ("training_6e14", 1): (637_179_789_312_000, 1, 6),
    ("training_6e14", 2): (637_179_789_312_000, 348, 352),
}


def compared(name: str, found: Outcome, objectives: int = 3) -> str:
    """What differs from what is known, in words; nothing where nothing is known."""
    known = FEWER.get((name, objectives)) if objectives < 3 else FRONTS.get(name)
    if found.status != "complete":
        return f"the search was {found.status}"
    if known is None or known == (found.total, found.front, found.tied):
        return ""
    return (
        f"{found.total:,} designs, front {found.front:,} attained by {found.tied:,}; "
        f"known: {known[0]:,}, {known[1]:,} and {known[2]:,}"
    )
