"""The witness search: a case outside a gate's own on which a mutant differs from its original."""
