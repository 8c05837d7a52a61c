"""What a plan file says of the training that its requests come from."""
