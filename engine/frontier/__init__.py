"""The solver: exact sums over a network, place by place."""
