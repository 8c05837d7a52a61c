"""Files that tell of clusters: which hosts are where, and what is inside them."""
