"""Models as other tools describe them: a ``config.json`` of Hugging Face."""
