"""Hours of faults under traffic, and whether what the processes and servers hold stays flat."""
