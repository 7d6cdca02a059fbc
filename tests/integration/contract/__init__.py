"""What the simulation's models do is what real servers do: every test here is put to both."""
