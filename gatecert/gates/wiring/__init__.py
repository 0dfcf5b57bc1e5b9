"""Name a gate's weaknesses from evidence."""
