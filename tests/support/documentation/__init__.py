"""What the pages say, as tests run it."""
