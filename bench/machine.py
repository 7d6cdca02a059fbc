"""What a section was measured on."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.report import Machine
from bench.section import Servers
from dev import artifacts
from dev.broker_settings import PulsarLine
from dev.images.pulsar_image import pulsar_version
from dev.instance import pulsar_java

_MEBIBYTE = 1 << 20
_POMS = {PulsarLine.FOUR: artifacts.POM, PulsarLine.FIVE: artifacts.NATIVE_POM}
_LINES: Mapping[Servers, Sequence[PulsarLine]] = {
    Servers.NONE: (),
    Servers.CLASSIC: (PulsarLine.FOUR,),
    Servers.BOTH: (PulsarLine.FOUR, PulsarLine.FIVE),
    Servers.OWN: (PulsarLine.FOUR,),
}


def this_machine() -> Machine:
    """The machine that this process runs on."""
    models = re.findall(r"(?m)^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text())
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        model=models[0] if models else platform.machine(),
        memory_mib=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEBIBYTE,
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
    )


def versions(servers: Servers) -> str:
    """Of the brokers that are measured, and of the Java they run on; empty if there are none."""
    return ", ".join(f"Pulsar {pulsar_version(_POMS[line])} on Java {_java(line)}" for line in _LINES[servers])


def _java(line: PulsarLine) -> str:
    java = pulsar_java(line)
    found = re.search(r'version "([^"]+)"', java.description)
    return found[1] if found else str(java.version)
