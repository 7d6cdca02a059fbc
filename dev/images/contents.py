"""Run inside an image, with its own Python and nothing else: prints what is installed there, as JSON.

Packages of Debian as dpkg has them, of Python by their metadata, and the jars of Spark by the coordinates within.
"""

import importlib.metadata
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

STATUS = Path("/var/lib/dpkg/status")
RELEASE = Path("/etc/os-release")
Thing = tuple[str, str, str]
JARS = Path("/opt/scalable-topics/packages/pyspark/jars")


def debian_packages() -> Iterator[Thing]:
    release = dict(line.split("=", 1) for line in RELEASE.read_text().splitlines() if "=" in line)
    distribution = f"{release['ID']}-{release.get('VERSION_ID', '')}".replace('"', "")
    for paragraph in STATUS.read_text().split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", paragraph, re.MULTILINE))
        if "installed" in fields.get("Status", "").split():
            name, version, machine = fields["Package"], fields["Version"], fields["Architecture"]
            qualifiers = f"arch={machine}&distro={distribution}"
            if "Source" in fields:
                # `glibc`, or `gcc-12 (12.2.0-14)` where its version is another one.
                qualifiers += f"&upstream={quote('@'.join(fields['Source'].rstrip(')').split(' (')), safe='')}"
            yield name, version, f"pkg:deb/debian/{quote(name)}@{quote(version, safe=':')}?{qualifiers}"


def python_packages() -> Iterator[Thing]:
    for found in importlib.metadata.distributions():
        name, version = found.metadata["Name"], found.version
        yield name, version, f"pkg:pypi/{re.sub('[-_.]+', '-', name).lower()}@{version}"


def jars() -> Iterator[Thing]:
    for jar in sorted(JARS.glob("*.jar")):
        yield from jar_contents(jar)


def jar_contents(jar: Path) -> Iterator[Thing]:
    known = False
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom\.properties", entry):
                text = io.TextIOWrapper(archive.open(entry), encoding="utf-8", errors="replace")
                fields = dict(line.strip().split("=", 1) for line in text if "=" in line)
                group, name, version = (fields.get(key, "") for key in ("groupId", "artifactId", "version"))
                if group and name and version:
                    known = True
                    yield f"{group}:{name}", version, f"pkg:maven/{group}/{name}@{version}"
    if not known:
        name, _, version = jar.stem.rpartition("-")
        yield name or jar.stem, version, f"pkg:generic/{name or jar.stem}@{version}"


found = sorted({*debian_packages(), *python_packages(), *jars()})
json.dump([{"name": name, "version": version, "purl": purl} for name, version, purl in found], sys.stdout)
