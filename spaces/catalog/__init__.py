"""Hardware, models, clusters and storage formats that the spaces share: tables with sources, and the counts that follow.

``hardware("h100-sxm")``, ``model("llama-3.1-405b")`` or ``model("./config.json")``,
``cluster("meta-24k-roce")`` and ``weight_format("int4-g128")`` give rows whose attributes are the columns, in base units.
"""

from .budget import ridge_point, training_days, training_flops, training_state
from .catalog import Row, cluster, hardware, model, names, weight_format
from .formats import bits_per_weight

__all__ = [
    "Row",
    "bits_per_weight",
    "cluster",
    "hardware",
    "model",
    "names",
    "ridge_point",
    "training_days",
    "training_flops",
    "training_state",
    "weight_format",
]
