"""How GitOps tools judge objects, with the samples of `examples/gitops` and the tools' own rules."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import yaml

from dev.artifacts import kube_programs
from dev.gitops_tool import gitops
from tests.support.examples import EXAMPLES

SAMPLES = EXAMPLES / "gitops"
OVERLAYS = SAMPLES / "kustomize" / "overlays"
_GROUP = "scalabletopics.io"
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Judgement:
    """What three tools say of an object.

    Args:
        kstatus: `Current`, `InProgress`, `Failed` or `Terminating`.
        flux: the same, or `Unknown`, for which Flux waits.
        argocd: `Healthy`, `Progressing`, `Degraded` or `Suspended`.
        message: Argo CD's.
    """

    kstatus: str
    flux: str
    argocd: str
    message: str


def judge(manifest: Mapping[str, Any]) -> Judgement:
    """Have an object judged. Raises AssertionError with the words of a script or an expression that is wrong."""
    expressions, script = _files()[manifest["kind"]]
    command = [str(gitops()), str(expressions), str(script)]
    done = subprocess.run(
        command, input=json.dumps(manifest), capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    health, _, message = found["argocd"].partition(" ")
    return Judgement(found["kstatus"], found["flux"], health, message)


def judged_kinds() -> frozenset[str]:
    """Kinds that the sample of Flux has expressions for."""
    return frozenset(_files())


def built(folder: Path) -> list[dict[str, Any]]:
    """What kustomize makes of a folder. Raises AssertionError with its words."""
    command = [str(kube_programs() / "kubectl"), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@cache
def _files() -> dict[str, tuple[Path, Path]]:
    """By kind, files of the expressions and of the script, as the tools would find them in the samples."""
    folder = Path(mkdtemp(prefix="gitops-"))
    config = yaml.safe_load((SAMPLES / "argocd" / "argocd-cm.yaml").read_text())
    customizations = yaml.safe_load(config["data"]["resource.customizations"])
    script = folder / "health.lua"
    script.write_text(customizations[f"{_GROUP}/*"]["health.lua"])
    files = {}
    for check in yaml.safe_load((SAMPLES / "flux" / "topics.yaml").read_text())["spec"]["healthCheckExprs"]:
        assert check.pop("apiVersion") == f"{_GROUP}/v1alpha1"
        file = folder / f"{check['kind']}.json"
        kind = check.pop("kind")
        file.write_text(json.dumps(check))
        files[kind] = file, script
    return files
