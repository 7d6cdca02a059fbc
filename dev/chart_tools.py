"""What the chart is made and tried with: helm, and the definitions of kinds of others that it has objects of."""

import platform
import re
from pathlib import Path

from dev.artifacts import BUILD_FLAGS
from dev.cache import content_key, ensure
from dev.console import say
from dev.errors import DevError
from dev.go_modules import go_build, module_files

HELM_SOURCES = Path(__file__).parent / "helm"
HELM_PACKAGE = "helm.sh/helm/v3/cmd/helm"
# Module, checksum, and the files of it.
FOREIGN_KINDS = (
    (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        (
            "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
            "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
        ),
    ),
    (
        "github.com/cert-manager/cert-manager@v1.21.2",
        "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        ("deploy/crds/cert-manager.io_certificates.yaml",),
    ),
)


def helm() -> Path:
    """Return the program `helm`, built from the version that `helm/go.mod` names."""
    inputs = [HELM_SOURCES / name for name in ("go.mod", "go.sum")]
    flags = [*BUILD_FLAGS, "-ldflags", _link_flags((HELM_SOURCES / "go.mod").read_text())]
    key = content_key(inputs, *flags, platform.machine())
    return ensure("helm", key, lambda into: _build_helm(into, flags)) / "helm"


def foreign_kinds() -> Path:
    """Return a directory with the custom resource definitions of prometheus-operator and cert-manager that we use."""
    note = "fetching the definitions of kinds that the chart can make (once a machine; less than a minute)"
    return module_files("foreign-kinds", FOREIGN_KINDS, note)


def _link_flags(go_mod: str) -> str:
    """What the makers of helm link in: its version, and that of the Kubernetes it assumes where it asks none."""
    helm = re.search(r"^\s*helm\.sh/helm/v3 (v[0-9.]+)", go_mod, re.MULTILINE)
    client = re.search(r"^\s*k8s\.io/client-go v0\.(\d+)\.", go_mod, re.MULTILINE)
    if helm is None or client is None:
        raise DevError(f"{HELM_SOURCES / 'go.mod'} requires no releases of helm.sh/helm/v3 and k8s.io/client-go")
    values = {
        "internal/version.version": helm[1],
        "pkg/lint/rules.k8sVersionMajor": "1",
        "pkg/lint/rules.k8sVersionMinor": client[1],
        "pkg/chartutil.k8sVersionMajor": "1",
        "pkg/chartutil.k8sVersionMinor": client[1],
    }
    return " ".join(["-s", "-w", *(f"-X helm.sh/helm/v3/{name}={value}" for name, value in values.items())])


def _build_helm(into: Path, flags: list[str]) -> None:
    say("building helm (once a machine; 2 to 4 minutes on two cores)")
    go_build("helm-build", HELM_SOURCES, into / "helm", flags, HELM_PACKAGE)
