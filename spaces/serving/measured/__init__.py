"""Published runs of inference in the space's own names: what a row of a table of measurements says."""
