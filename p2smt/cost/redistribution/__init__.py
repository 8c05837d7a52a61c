"""Times of the steps of a redistribution, and proved bounds on them."""
