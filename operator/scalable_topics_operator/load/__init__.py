"""How loaded segments are: samples of the brokers' statistics, and what a topic keeps of them (DESIGN §8, R34, R35)."""
