"""From formulas to the time of an iteration: work, requests, their prices, and how they add up."""
