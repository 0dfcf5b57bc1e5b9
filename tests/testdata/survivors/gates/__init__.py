"""Gates that are functions: each takes an entry, knows it by its name, and says yes or no."""
