"""Okabe and Ito's colours, which colour-blind readers can tell apart."""

BLUE, ORANGE, GREEN, PINK, SKY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"
BLACK = "#000000"
