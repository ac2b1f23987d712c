"""Branch and bound over boxes of a space, behind the solver ``pareto``."""
