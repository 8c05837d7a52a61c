"""Work that hides communication, and what is left of it for other requests.

A second of work hides one second of communication, whatever its axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2smt.cost.loads.routing import FloatArray
from p2smt.workload.requests import Cover


@dataclass(frozen=True, slots=True)
class FreeWork:
    """Seconds of a micro-batch on each stage that hide nothing yet."""

    forward_s: FloatArray
    backward_s: FloatArray

    def under(self, cover: Cover) -> FloatArray:
        """What is left for a request that hides under this work."""
        if cover is Cover.FORWARD:
            return self.forward_s
        if cover in (Cover.BACKWARD, Cover.LAYERS_BACKWARD):
            return self.backward_s
        return np.asarray(self.forward_s + self.backward_s)

    def without(self, cover: Cover, hidden_s: FloatArray) -> FreeWork:
        """What is left beside that; what hides under work of both passes is spread over both."""
        if cover is Cover.LAYERS_BACKWARD:
            return FreeWork(self.forward_s, np.maximum(self.backward_s - hidden_s, 0.0))
        all_s, hidden_s = np.broadcast_arrays(self.forward_s + self.backward_s, hidden_s)
        taken = np.divide(hidden_s, all_s, out=np.ones(all_s.shape), where=all_s > 0)
        left = np.maximum(1 - taken, 0.0)
        return FreeWork(self.forward_s * left, self.backward_s * left)
