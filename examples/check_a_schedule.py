"""Is a hand-written all-reduce right in every interleaving?  A ring, and one with a fault."""

from dataclasses import replace

import p2smt

ring = p2smt.classic("ring-all-reduce", 4)
print("ring:", p2smt.verify(ring).verdict.value)

# Leave out the last message of the schedule: some rank then lacks a part of the sum.
steps = ring.steps[:-1]
report = p2smt.verify(replace(ring, steps=steps))
print("without its last step:", report.verdict.value)
print(" ", report.violations[0].message)
