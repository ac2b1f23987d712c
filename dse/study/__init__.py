"""Running searches: the front, the tally of designs, the study folder and the driver."""
