"""Orders without a proof: ``known`` (those that need no search), ``climb`` (better ones near a
known one), ``every`` (all of them, where they are few)."""
