"""What this machine can do at most: memory bandwidth, matrix multiplication, the cost of a call."""
