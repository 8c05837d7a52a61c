"""First screens of answers, by what they are of: the verdict, then what matters next."""
