"""What all commands share: one value an option, texts as they are given, loaded when called."""
