"""What the ScalableTopic of a story is called."""

NAMESPACE, NAME = "shop", "orders"
