"""The Kubernetes side: a typed client, status writes with compare-and-swap, Events (DESIGN §3)."""
