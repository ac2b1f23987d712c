"""Hardware, models and clusters that the spaces share: tables with sources, and the counts that follow.

``hardware("h100-sxm")``, ``model("llama-3.1-405b")`` or ``model("./config.json")`` and
``cluster("meta-24k-roce")`` give rows whose attributes are the columns, in base units.
"""

from .budget import ridge_point, training_days, training_flops, training_state
from .catalog import Row, cluster, hardware, model, names

__all__ = [
    "Row",
    "cluster",
    "hardware",
    "model",
    "names",
    "ridge_point",
    "training_days",
    "training_flops",
    "training_state",
]
