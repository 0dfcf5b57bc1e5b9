"""Watch what a gate does while it judges: evidence, never a verdict."""
