"""What is done to scalable topics, as journaled and resumable steps (DESIGN §7)."""
