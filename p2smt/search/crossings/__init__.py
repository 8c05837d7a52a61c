"""Which programs are best, whatever the hardware: least sufficient sets."""
