"""Where candidates run: a warm server per job, a server per subject, a child per candidate.

supervisor (a thread of the command) ── starts ──> zygote: imports torch and Triton once
zygote ── forks per shard ──> subject server: builds inputs and references once
subject server ── forks per candidate and gate ──> child: overlay, import, judge, verdict

Every process dies with its parent, and a child leaves no process behind.
"""
