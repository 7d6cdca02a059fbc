"""Measurements: what is compared stands side by side in one run, and ratios are printed."""
