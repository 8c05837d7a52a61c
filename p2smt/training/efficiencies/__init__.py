"""What frameworks reach of a device's rates, by framework and device, with their sources."""
