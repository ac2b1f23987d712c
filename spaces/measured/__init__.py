"""What tables of measurements share between spaces: names of GPUs and models, targets, and columns side by side."""
