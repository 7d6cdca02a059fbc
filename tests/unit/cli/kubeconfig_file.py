"""A kubeconfig for an API server of a test."""

from __future__ import annotations

from pathlib import Path

import yaml


def write_kubeconfig(folder: Path, port: int) -> Path:
    """Write one, whose default namespace is `shop`; answers its path."""
    file = folder / "kubeconfig"
    context = {"cluster": "c", "user": "u", "namespace": "shop"}
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": {"token": "kubeconfigs-t0ken"}}],
                "contexts": [{"name": "x", "context": context}],
                "current-context": "x",
            }
        )
    )
    return file
