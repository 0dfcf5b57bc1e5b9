"""A team's pytest suite as a gate."""
