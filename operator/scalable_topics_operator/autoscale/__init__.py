"""When segments split, merge and get other buckets, and why: pure (pip-483, pip-486, DESIGN §8)."""
