"""The images of the operator and of the pipeline, built from the Dockerfile by Docker or podman."""
