"""What a user asks: parallelism axes and matrices, requests, side constraints."""
