"""What the project depends on: which versions, under which licences, and what is known to be wrong with them."""
