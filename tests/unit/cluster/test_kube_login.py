"""Credentials for the API server; what is wrong with them is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from scalable_topics_operator.cluster.kube_login import NoKubernetes, load_endpoint


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", str(missing))
    with pytest.raises(NoKubernetes, match=str(missing)):
        load_endpoint()


@pytest.mark.parametrize("content", ["{", "clusters: []\ncurrent-context: nowhere\n"])
def test_a_kubeconfig_that_makes_no_sense_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(NoKubernetes, match="cannot be read"):
        load_endpoint()
