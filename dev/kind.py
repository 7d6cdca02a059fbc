"""A cluster by kind, with the operator, a broker and the token of its administrator: what the quickstart needs."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev import chart_tools, pulsar_pod, tokens
from dev.artifacts import kube_programs
from dev.cache import cache_root
from dev.chart_values import CHART
from dev.console import say
from dev.errors import DevError
from dev.images.base import LOCAL, local_base
from dev.images.engine import Engine
from dev.images.project import tree_image
from dev.images.pulsar_image import pulsar_image, pulsar_version
from dev.prerequisites import on_path
from dev.pulsar_pod import OFFICIAL_IMAGE

REPOSITORY = Path(__file__).parents[1]
CONFIGURATION = REPOSITORY / "kind-config.yaml"
NAMESPACE = "scalable-topics"
WAIT = "5m"
COMMAND_TIMEOUT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Kind:
    """The cluster that kind-config.yaml names.

    Attributes:
        engine: Docker or podman, which runs its node.
        program: `kind`.
        node_image: of Kubernetes; kind's own if None.
    """

    engine: Engine
    program: Path
    node_image: str | None = None

    @classmethod
    def found(cls, engine: Engine, node_image: str | None) -> "Kind":
        """Return it with the `kind` on the PATH. Raises DevError."""
        program = on_path("kind")
        if program is None:
            raise DevError("kind is needed to make a cluster: install it (go install sigs.k8s.io/kind@latest)")
        return cls(engine, program, node_image)

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return str(yaml.safe_load(CONFIGURATION.read_text())["name"])

    @property
    def kubeconfig(self) -> Path:
        """An administrator's way in, for this cluster alone."""
        return cache_root() / "kind" / self.name / "kubeconfig"

    def create(self) -> None:
        """Make the cluster unless it is there. Raises DevError."""
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        if self.name in self._kind("get", "clusters").split():
            self._kind("export", "kubeconfig", "--name", self.name, "--kubeconfig", str(self.kubeconfig))
            return
        say(f"making the cluster {self.name} (a minute or two)")
        image = ["--image", self.node_image] if self.node_image else []
        config = ["--config", str(CONFIGURATION), "--kubeconfig", str(self.kubeconfig), "--wait", WAIT]
        self._kind("create", "cluster", *config, *image)

    def load(self, image: str) -> None:
        """Have an image for pods. Raises DevError."""
        with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
            self.engine.save(image, archive.file)
            archive.flush()
            self._kind("load", "image-archive", archive.name, "--name", self.name)

    def delete(self) -> None:
        """Remove the cluster. Harmless when it is not there."""
        self._kind("delete", "cluster", "--name", self.name, "--kubeconfig", str(self.kubeconfig))
        shutil.rmtree(self.kubeconfig.parent, ignore_errors=True)

    def _kind(self, *arguments: str) -> str:
        provider = {"KIND_EXPERIMENTAL_PROVIDER": "podman"} if self.engine.is_podman else {}
        return _run(str(self.program), *arguments, environment=provider)


def up(base: str | None, node_image: str | None) -> int:
    """Make the cluster with all that the quickstart needs, tell the next command, and return the exit code.

    Args:
        base: of the operator's image; `local` makes one here, and an image of Pulsar with it.
        node_image: of Kubernetes; kind's own if None.
    """
    engine = Engine.found()
    kind = Kind.found(engine, node_image)
    operator, pulsar = kind_images(engine, base)
    kind.create()
    for image in (operator, *pulsar.built):
        kind.load(image)
    install(kind, operator, pulsar.name)
    print(f"export KUBECONFIG={kind.kubeconfig}")
    print("kubectl apply -f examples/quickstart.yaml")
    return 0


def down() -> int:
    """Remove the cluster and return the exit code."""
    Kind.found(Engine.found(), None).delete()
    return 0


@dataclass(frozen=True, slots=True)
class PulsarImage:
    """Where pods have Pulsar from.

    Attributes:
        name: of the image.
        is_built: whether it was made here, so that a cluster must be given it.
    """

    name: str
    is_built: bool

    @property
    def built(self) -> list[str]:
        """The image, if it was made here."""
        return [self.name] if self.is_built else []


def kind_images(engine: Engine, base: str | None) -> tuple[str, PulsarImage]:
    """Return images of the operator and of Pulsar, built here as far as they are not pulled."""
    if base != LOCAL:
        return tree_image(engine, "operator", base), PulsarImage(f"{OFFICIAL_IMAGE}:{pulsar_version()}", is_built=False)
    made = local_base(engine)
    return tree_image(engine, "operator", made), PulsarImage(pulsar_image(engine, made), is_built=True)


def kubectl() -> Path:
    """Return the `kubectl` on the PATH, else the one built here."""
    return on_path("kubectl") or kube_programs() / "kubectl"


def helm() -> Path:
    """Return the `helm` on the PATH, else the one built here."""
    return on_path("helm") or chart_tools.helm()


def install(kind: Kind, operator: str, pulsar: str) -> None:
    """Put a broker, the Secret that examples/quickstart.yaml asks for, and the operator into the cluster.

    Args:
        kind: the cluster.
        operator: image of the operator, which the cluster has.
        pulsar: image of Pulsar, which it has or can pull.
    """
    cluster = {"KUBECONFIG": str(kind.kubeconfig)}
    program = str(kubectl())
    directory = kind.kubeconfig.parent / "tokens"
    tokens.create_all(directory)
    secret = pulsar_pod.token_secret(directory, "default")
    _apply(program, cluster, [*pulsar_pod.pulsar_manifests(pulsar, directory), secret])
    say("waiting for the broker")
    where = ("--namespace", pulsar_pod.NAMESPACE)
    _run(program, "rollout", "status", *where, "statefulset/pulsar", f"--timeout={WAIT}", environment=cluster)
    repository, _, tag = operator.rpartition(":")
    _run(
        *(str(helm()), "upgrade", "--install", "scalable-topics", str(CHART)),
        *("--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", WAIT),
        *("--set", f"image.repository={repository}", "--set-string", f"image.tag={tag}"),
        environment=cluster,
    )


def _apply(program: str, cluster: dict[str, str], manifests: Sequence[dict[str, Any]]) -> None:
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    _run(program, "apply", "--filename", "-", environment=cluster, text=content)


def _run(*command: str, environment: dict[str, str], text: str = "") -> str:
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            command,
            input=text,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise DevError(f"{' '.join(command[:4])} … failed: {done.stderr.strip()}")
        return done.stdout
    raise DevError(f"{' '.join(command[:4])} … took more than {COMMAND_TIMEOUT_SECONDS} s")
