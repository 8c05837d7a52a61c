"""What a newcomer meets: first page, help, examples, completion, and files in the wrong place."""
