"""Where candidates run: a warm server per job, a server per subject, a child per candidate.

supervisor (a thread of the command) ── starts ──> zygote: imports torch and Triton once
zygote ── forks per shard ──> subject server: builds inputs and references once
subject server ── forks per candidate and gate ──> child: overlay, import, judge, verdict
child of a command gate ── starts ──> the command: overlay and report in each Python process

Every process dies with its parent, and a child leaves no process behind: whoever loses its parent
is adopted and ended by the server, or by the zygote where the server is gone. Where a gate of the
user's runs, a server and its children live in a private copy of the project (`private_tree`).
"""
