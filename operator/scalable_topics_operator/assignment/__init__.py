"""Who reads what of an ordered subscription: pure, over a layout (DESIGN §9, pip-468 SubscriptionCoordinator)."""
