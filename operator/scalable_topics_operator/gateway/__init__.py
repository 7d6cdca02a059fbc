"""HTTP for users, tools and other replicas: the admin REST of pip-468, authenticated with Kubernetes tokens."""
