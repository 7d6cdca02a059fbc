"""The definitions of other people's kinds that the documentation has manifests of: Argo CD's, Flux's and KEDA's."""

from pathlib import Path

from dev.go_modules import module_files

# Module, checksum, and the files of it.
MODULES = (
    (
        "github.com/argoproj/argo-cd/v3@v3.2.1",
        "h1:rvrkW/JdH4V+xJgNDZI9wa/Ygd+fWoGbd1rAhvno22c=",
        ("manifests/crds/application-crd.yaml",),
    ),
    (
        "github.com/fluxcd/source-controller@v1.7.3",
        "h1:gFfeBiNUgF0kFFGap/rrMeJqz+0Tod0ARENJO8w/UA8=",
        ("config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",),
    ),
    (
        "github.com/fluxcd/kustomize-controller@v1.7.3",
        "h1:SzNnGn/4ObAPEHHleM5U7y/AKxKXph3Vj6ZhteeXw8M=",
        ("config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",),
    ),
    (
        "github.com/fluxcd/helm-controller@v1.4.3",
        "h1:449LcGJXLCylvrNCq8ycevwa5mxE1Mn9vxTwlsj/no8=",
        ("config/crd/bases/helm.toolkit.fluxcd.io_helmreleases.yaml",),
    ),
    (
        "github.com/kedacore/keda/v2@v2.18.1",
        "h1:h6bRt/IOxxtZpJlHSqhdH/lcInH7Z9obxg/JvWOmGAw=",
        (
            "config/crd/bases/keda.sh_scaledobjects.yaml",
            "config/crd/bases/keda.sh_triggerauthentications.yaml",
        ),
    ),
)


def documented_kinds() -> Path:
    """Return a directory with these custom resource definitions. Raises DevError."""
    note = "fetching the definitions of kinds that the documentation shows (once a machine; less than a minute)"
    return module_files("documented-kinds", MODULES, note)
