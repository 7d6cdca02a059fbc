"""An image of Pulsar for pods of a node that can reach no registry; elsewhere Pulsar's own image serves."""

import re
from pathlib import Path

from dev.artifacts import POM, pulsar_jars
from dev.cache import content_key
from dev.console import say
from dev.errors import DevError
from dev.images.engine import Engine

DOCKERFILE = Path(__file__).parent / "pulsar" / "Dockerfile"


def pulsar_version(pom: Path = POM) -> str:
    """Return the version of Pulsar that the brokers here are of, or those that another file names."""
    found = re.search(r"<pulsar.version>([^<]+)</pulsar.version>", pom.read_text())
    if found is None:
        raise DevError(f"{pom} names no version of Pulsar")
    return found[1]


def pulsar_image(engine: Engine, base: str) -> str:
    """Return the name of an image with Pulsar's jars in `/pulsar/lib`, building it unless it is there."""
    jars = pulsar_jars()
    name = f"localhost/pulsar:{pulsar_version()}-{content_key([DOCKERFILE], jars.name, base)}"
    if engine.inspect(name) is None:
        say("building an image of Pulsar (the first time a minute or two)")
        engine.build(DOCKERFILE, jars, "pulsar", name, {"BASE_IMAGE": base})
    return name
