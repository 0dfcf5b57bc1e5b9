"""Lane `cuda`: kernels compiled for a GPU, run in a fresh process for each candidate.

After `launches.activate()`, in a process that uses Triton's compiler, its launches are recorded
and shown as those of the interpreter lane are (`gatecert.lanes.interpreter.launches`). What a
kernel does inside is not seen: neither accesses out of bounds, nor masks, nor loops.
"""
