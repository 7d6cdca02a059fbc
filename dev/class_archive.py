"""An archive of the classes a broker loads. With it a broker is ready after half the processor time.

It is recorded from a throw-away broker, once for each Java and each set of jars. A Java that finds the archive
unfit ignores it.
"""

import shutil
from dataclasses import replace
from pathlib import Path

from dev import tokens
from dev.artifacts import NATIVE_POM, POM
from dev.broker_settings import Profile, PulsarLine
from dev.brokers import Pulsar, broker_name, port_names
from dev.cache import cache_root, content_key, ensure
from dev.console import say
from dev.jvm import Jvm
from dev.ports import PortReservations
from dev.prerequisites import Java
from dev.processes import ProcessTable
from dev.workspace import Workspace

ARCHIVE = "classes.jsa"
DUMP_TIMEOUT_SECONDS = 300


def with_class_archive(jvm: Jvm, java: Java, line: PulsarLine) -> Jvm:
    """Return the same runtime with the jars of that Pulsar, starting from the archive if this Java could write one."""
    key = content_key([POM if line is PulsarLine.FOUR else NATIVE_POM], java.description, str(jvm.jars))
    archive = ensure("pulsar-classes", key, lambda into: _record(jvm, line, into)) / ARCHIVE
    return replace(jvm, options=(f"-XX:SharedArchiveFile={archive}",)) if archive.exists() else jvm


def _record(jvm: Jvm, line: PulsarLine, into: Path) -> None:
    say(f"recording the classes a broker of Pulsar {line} loads (once a machine; about half a minute)")
    scratch = into / "scratch"
    scratch.mkdir()
    processes = ProcessTable(scratch / "pids", cache_root() / "logs" / "class-archive")
    reservations = PortReservations(cache_root() / "ports", scratch)
    ports = reservations.reserve(port_names(1))
    recorder = replace(jvm, directory=scratch, options=(f"-XX:ArchiveClassesAtExit={into / ARCHIVE}",))
    workspace, token_directory = Workspace(scratch, ports, reservations, processes), scratch / "tokens"
    tokens.create_all(token_directory)
    pulsar = Pulsar(recorder, workspace, token_directory, 1, Profile.ORDINARY, line)
    try:
        pulsar.start()
    finally:
        # The archive is written while the process ends.
        processes.stop(broker_name(0), timeout_seconds=DUMP_TIMEOUT_SECONDS)
        reservations.release(ports.values())
        shutil.rmtree(scratch)
