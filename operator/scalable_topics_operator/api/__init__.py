"""Models of the custom resources; the manifests in `crds/` are generated from them (DESIGN §5)."""
