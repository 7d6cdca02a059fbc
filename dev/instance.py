"""One local cluster: a control plane and brokers in a directory of their own, beside any number of others."""

import json
import os
import secrets
import shlex
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Self

from dev import artifacts, brokers, kubernetes, prerequisites, tokens
from dev.access import PulsarAccess
from dev.broker_settings import Profile, PulsarLine
from dev.brokers import Pulsar
from dev.cache import cache_root, file_lock
from dev.class_archive import with_class_archive
from dev.console import say
from dev.errors import DevError, PortClashError
from dev.jvm import Jvm
from dev.kubernetes import Kubernetes
from dev.node.network import NODE_ADDRESS
from dev.node.node import Node, NodeArtifacts
from dev.ports import LOOPBACK, PortReservations
from dev.prerequisites import Java
from dev.processes import ProcessTable
from dev.workspace import Workspace

RUN_VARIABLE = "SCALABLE_TOPICS_RUN"
PRIVATE_PREFIX = "private-"
START_ATTEMPTS = 3
STATE_FILE = "instance.json"


@dataclass(frozen=True, slots=True)
class Shape:
    """What an instance consists of.

    Attributes:
        kubernetes: whether there is a control plane.
        brokers: number of brokers, 0 to 2. Two share a ZooKeeper and a bookie; one is a standalone.
        profile: settings of the brokers.
        node: whether there is a real node, with all of the instance in a network of its own.
        spark: whether that node runs SparkApplications: it has a spark-operator and the image of the pipeline.
        pulsar: which Pulsar the brokers are.
        native: whether a standalone broker of Pulsar 5 runs beside them.
    """

    kubernetes: bool = True
    brokers: int = 1
    profile: Profile = Profile.ORDINARY
    node: bool = False
    spark: bool = False
    pulsar: PulsarLine = PulsarLine.FOUR
    native: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.brokers <= brokers.MAXIMUM_BROKERS:
            raise DevError(f"an instance has 0 to {brokers.MAXIMUM_BROKERS} brokers, not {self.brokers}")
        if self.node and not self.kubernetes:
            raise DevError("a node needs a control plane")
        if self.spark and not self.node:
            raise DevError("SparkApplications need a node")
        if self.native and self.pulsar is PulsarLine.FIVE:
            raise DevError("brokers of Pulsar 5 are native themselves: leave out the one beside them")

    @property
    def lines(self) -> tuple[PulsarLine, ...]:
        """Which Pulsar its brokers are, each once."""
        main = (self.pulsar,) if self.brokers else ()
        return (*main, PulsarLine.FIVE) if self.native else main

    def __str__(self) -> str:
        control_plane = "a control plane" if self.kubernetes else "no control plane"
        control_plane += " with a node" if self.node else ""
        control_plane += " and a spark-operator" if self.spark else ""
        beside = " with a native one beside" if self.native else ""
        return f"{control_plane} and {self.brokers} broker(s) of Pulsar {self.pulsar}{beside}, profile {self.profile}"

    def port_names(self) -> list[str]:
        """Return the names of the ports needed."""
        control_plane = kubernetes.PORT_NAMES if self.kubernetes else ()
        native = brokers.port_names(1, brokers.NATIVE) if self.native else ()
        return [*control_plane, *(brokers.port_names(self.brokers) if self.brokers else ()), *native]


@dataclass(frozen=True, slots=True)
class InstanceState:
    """What is recorded of an instance from its start until its data is removed."""

    shape: Shape
    ports: dict[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path) -> "InstanceState | None":
        """Read a state file; None if there is none."""
        try:
            content = json.loads(file.read_text())
        except FileNotFoundError:
            return None
        shape = content["shape"]
        enumerations = {"profile": Profile(shape["profile"]), "pulsar": PulsarLine(shape.get("pulsar", "4"))}
        return cls(Shape(**(shape | enumerations)), content["ports"])

    def write(self, file: Path) -> None:
        """Write the state file in one step."""
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(self), indent=2))
        unfinished.rename(file)


def pulsar_java(line: PulsarLine) -> Java:
    """Return the Java that runs servers of that Pulsar."""
    return prerequisites.java() if line is PulsarLine.FOUR else prerequisites.native_java()


def pulsar_jvm(directory: Path, line: PulsarLine) -> Jvm:
    """Return what runs servers of that Pulsar, built and fetched as needed; it keeps its own files in `directory`."""
    java = pulsar_java(line)
    jars = artifacts.pulsar_jars() if line is PulsarLine.FOUR else artifacts.native_pulsar_jars()
    return with_class_archive(Jvm(java.executable, jars, directory), java, line)


def run_root() -> Path:
    """Return the directory of all instances: `$SCALABLE_TOPICS_RUN`, else `instances` in the cache."""
    if configured := os.environ.get(RUN_VARIABLE):
        return Path(configured).expanduser().resolve()
    return cache_root() / "instances"


class LocalCluster:
    """One instance. As a context manager it is started on entry, and stopped and removed on exit.

    Args:
        name: tells instances apart; a plain file name.
        shape: what it consists of. An instance that exists keeps its own shape.
    """

    def __init__(self, name: str = "default", shape: Shape = Shape()) -> None:
        if not name or Path(name).name != name or name.startswith("."):
            raise DevError(f"an instance name is a plain file name, not {name!r}")
        prerequisites.require_linux()
        self.name = name
        self.directory = run_root() / name
        self._shape = shape
        self._processes = ProcessTable(self.directory / "pids", self.directory / "logs")
        self._reservations = PortReservations(cache_root() / "ports", self._state_file)

    @classmethod
    def private(cls, shape: Shape) -> "LocalCluster":
        """Return an instance of this process alone, under a name that nobody else has."""
        return cls(f"{PRIVATE_PREFIX}{os.getpid()}-{secrets.token_hex(4)}", shape)

    @classmethod
    def stop_orphans(cls) -> None:
        """Stop the private instances whose process is gone; their logs stay."""
        for cluster in cls.all():
            owner = cluster.name.removeprefix(PRIVATE_PREFIX).partition("-")[0]
            if cluster.name.startswith(PRIVATE_PREFIX) and not Path(f"/proc/{owner}").exists():
                cluster.stop()

    @classmethod
    def all(cls) -> "list[LocalCluster]":
        """Return the instances that are there, running or with kept data."""
        return [cls(file.parent.name) for file in sorted(run_root().glob(f"*/{STATE_FILE}"))]

    @classmethod
    def remove_leftovers(cls) -> None:
        """Remove the logs of instances that are stopped and hold no data."""
        for directory in run_root().glob("*/"):
            with file_lock(cls._lock_file(directory.name)):
                if not (directory / STATE_FILE).exists():
                    shutil.rmtree(directory)
                    cls._lock_file(directory.name).unlink()

    @cached_property
    def kubernetes(self) -> Kubernetes:
        """The control plane."""
        state = self._recorded()
        if not state.shape.kubernetes:
            raise DevError(f"instance {self.name} has no control plane")
        address = NODE_ADDRESS if state.shape.node else None
        return Kubernetes(self.name, artifacts.kube_programs(), self._workspace("kubernetes", state), address)

    @cached_property
    def pulsar(self) -> Pulsar:
        """The brokers."""
        state = self._recorded()
        if not state.shape.brokers:
            raise DevError(f"instance {self.name} has no brokers")
        return self._pulsar(state, brokers.MAIN, state.shape.brokers, state.shape.pulsar)

    @cached_property
    def native_pulsar(self) -> Pulsar:
        """The broker of Pulsar 5 beside the others; where these are of Pulsar 5 themselves, they."""
        state = self._recorded()
        if state.shape.native:
            return self._pulsar(state, brokers.NATIVE, 1, PulsarLine.FIVE)
        if state.shape.pulsar is PulsarLine.FIVE:
            return self.pulsar
        raise DevError(f"instance {self.name} has no broker of Pulsar 5")

    @property
    def native(self) -> PulsarAccess | None:
        """How brokers of Pulsar 5 are reached; None where there are none."""
        return self.native_pulsar.access if PulsarLine.FIVE in self.shape.lines else None

    @property
    def node(self) -> Node:
        """The node."""
        if not self.shape.node:
            raise DevError(f"instance {self.name} has no node")
        return Node(self.directory, self._processes)

    @property
    def shape(self) -> Shape:
        """What it consists of: as recorded if it exists, else as asked for."""
        state = InstanceState.read(self._state_file)
        return state.shape if state else self._shape

    @property
    def environment_file(self) -> Path:
        """A file for the shell's `.` command that exports `environment()`."""
        return self.directory / "env"

    @property
    def logs(self) -> Path:
        """The directory of the servers' logs."""
        return self.directory / "logs"

    def environment(self) -> dict[str, str]:
        """Return the variables that describe the instance."""
        variables: dict[str, str] = {}
        if self.shape.kubernetes:
            variables |= self.kubernetes.access.environment() | {"KUBECTL": str(self.kubernetes.kubectl)}
        if self.shape.brokers:
            variables |= self.pulsar.access.environment()
        if native := self.native:
            variables |= native.native_environment()
        if self.shape.node:
            variables |= self.node.access.environment()
        return variables

    def inside(self) -> AbstractContextManager[None]:
        """Have this thread where the servers are reached, with what it starts meanwhile: see `Network.entered`."""
        return self.node.network.entered() if self.shape.node else nullcontext()

    def command(self, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one where the servers are reached."""
        return self.node.network.command(command) if self.shape.node else list(command)

    def running(self) -> dict[str, int]:
        """Return the pid of each server process that is running."""
        identities = {name: self._processes.identity(name) for name in self._processes.names()}
        return {name: identity.pid for name, identity in identities.items() if identity is not None}

    def start(self) -> None:
        """Start what is not running, on kept data if there is some, and wait until all of it serves.

        Raises:
            DevError: it could not be started; nothing is left running. Or it exists in another shape.
        """
        with self._lock():
            state = InstanceState.read(self._state_file)
            # Without ports its first start was interrupted before anything ran.
            if state is not None and state.ports:
                self._require_shape(state.shape)
                self._start_parts(state.shape)
                return
            for attempt in range(1, START_ATTEMPTS + 1):
                try:
                    self._start_fresh()
                    return
                except PortClashError as clash:
                    if attempt == START_ATTEMPTS:
                        raise
                    say(f"{clash}; trying other ports")

    def stop(self, *, keep_data: bool = False, keep_logs: bool = True) -> None:
        """Stop every server of the instance. Harmless when none is running.

        Args:
            keep_data: keep data, credentials and ports for the next `start`.
            keep_logs: keep the logs when the data is removed.
        """
        with self._lock():
            self._stop_processes()
            if not keep_data:
                self._remove(keep_logs=keep_logs)
                self._lock_file(self.name).unlink()

    def kill(self, *names: str) -> None:
        """Kill server processes by their names with SIGKILL, as a crash would."""
        self._processes.kill(*names)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep_logs=error is not None)

    def _start_fresh(self) -> None:
        self._remove(keep_logs=False)
        self.directory.mkdir(parents=True)
        InstanceState(self._shape).write(self._state_file)
        try:
            ports = self._reservations.reserve(self._shape.port_names())
            InstanceState(self._shape, ports).write(self._state_file)
            self._start_parts(self._shape)
        except BaseException:
            self._remove(keep_logs=True)
            raise

    def _start_parts(self, shape: Shape) -> None:
        starts: list[Callable[[], None]] = []
        if shape.kubernetes:
            starts.append(self.kubernetes.start)
        if shape.lines:
            tokens.create_all(self._token_directory)
        if shape.brokers:
            starts.append(self.pulsar.start)
        if shape.native:
            starts.append(self.native_pulsar.start)
        try:
            if shape.node:
                self._start_with_node(starts)
            else:
                self._start_together(starts)
        except BaseException:
            self._stop_processes()
            raise
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in self.environment().items())
        self.environment_file.write_text("".join(lines))

    def _start_with_node(self, starts: list[Callable[[], None]]) -> None:
        # Whatever is to be built or fetched is so before the network without a way out is entered.
        node, made = self.node, NodeArtifacts.made(spark=self.shape.spark)
        node.network.create()
        with node.network.entered():
            self._start_together([*starts, lambda: node.prepare(made)])
            node.join(self.kubernetes, made)

    def _start_together(self, starts: list[Callable[[], None]]) -> None:
        with ThreadPoolExecutor() as pool:
            try:
                for outcome in as_completed([pool.submit(start) for start in starts]):
                    outcome.result()
            except BaseException:
                # Whoever still waits for a server sees it end, and gives up.
                self._stop_processes()
                raise

    def _stop_processes(self) -> None:
        if self.shape.node:
            self.node.stop()
            self.node.network.remove()
        for waves in zip_longest(kubernetes.STOP_WAVES, brokers.STOP_WAVES, fillvalue=()):
            self._processes.stop(*(name for wave in waves for name in wave))

    def _remove(self, *, keep_logs: bool) -> None:
        self.__dict__.pop("kubernetes", None)
        self.__dict__.pop("pulsar", None)
        self.__dict__.pop("native_pulsar", None)
        state = InstanceState.read(self._state_file)
        if state is not None:
            self._reservations.release(state.ports.values())
        kept = {self.logs} if keep_logs else set()
        for entry in set(self.directory.glob("*")) - kept:
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        if self.directory.is_dir() and not any(self.directory.iterdir()):
            self.directory.rmdir()

    def _pulsar(self, state: InstanceState, group: str, count: int, line: PulsarLine) -> Pulsar:
        workspace, shape = self._workspace("pulsar" if group == brokers.MAIN else group, state), state.shape
        return Pulsar(
            *(pulsar_jvm(workspace.directory, line), workspace, self._token_directory, count, shape.profile, line),
            address=NODE_ADDRESS if shape.node else LOOPBACK,
            group=group,
        )

    def _workspace(self, part: str, state: InstanceState) -> Workspace:
        return Workspace(self.directory / part, state.ports, self._reservations, self._processes)

    def _require_shape(self, recorded: Shape) -> None:
        if recorded != self._shape:
            raise DevError(
                f"instance {self.name} exists with {recorded}, not with {self._shape}:"
                " stop it first, or use another name"
            )

    def _recorded(self) -> InstanceState:
        state = InstanceState.read(self._state_file)
        if state is None:
            raise DevError(f"instance {self.name} is not there: start it first")
        return state

    @property
    def _token_directory(self) -> Path:
        return self.directory / "pulsar" / "tokens"

    @property
    def _state_file(self) -> Path:
        return self.directory / STATE_FILE

    def _lock(self) -> AbstractContextManager[None]:
        return file_lock(self._lock_file(self.name))

    @staticmethod
    def _lock_file(name: str) -> Path:
        return run_root() / f".{name}.lock"
