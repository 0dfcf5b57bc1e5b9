"""Why a gate accepted a mutant: evidence, and the diagnosis that follows from it."""
