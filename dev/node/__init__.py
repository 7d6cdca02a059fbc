"""A real node for the local cluster: containerd, kubelet and the images that pods run, with no image registry."""
