"""Pulsar on one machine: a standalone broker, or two brokers over ZooKeeper and a bookie."""

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dev import broker_settings, prerequisites, tokens
from dev.access import PulsarAccess
from dev.broker_settings import CLUSTER, Profile, PulsarLine
from dev.errors import DevError
from dev.jvm import Jvm
from dev.ports import LOOPBACK
from dev.pulsar_admin import PulsarAdmin
from dev.tenancy import create_tenancy
from dev.workspace import Workspace

MAXIMUM_BROKERS = 2
READY_TIMEOUT_SECONDS = 120
ANSWER_TIMEOUT_SECONDS = 5
BROKER_HEAP_MB = {Profile.ORDINARY: 400, Profile.ROLLOVER: 400, Profile.FLEET: 8000}
BOOKIE_HEAP_MB = 300
SMALL_HEAP_MB = 128
ENSEMBLE_PORT_NAMES = ("zookeeper", "bookie")
METADATA_SETUP = "metadata-setup"
# What processes are called: the main brokers, and a broker of Pulsar 5 beside them.
MAIN, NATIVE = "broker", "native"
# Stopped wave after wave. Brokers go first: they hang when ZooKeeper is gone before them.
STOP_WAVES = (("broker-0", "broker-1", "native-0", METADATA_SETUP), ("bookie",), ("zookeeper",))


def port_names(brokers: int, group: str = MAIN) -> list[str]:
    """Return the names of the ports that so many brokers and what is below them need.

    The bookie inside a standalone picks a port of its own at every start.
    """
    web_and_service = [f"{broker_name(i, group)}-{kind}" for i in range(brokers) for kind in ("service", "web")]
    return [*web_and_service, *(ENSEMBLE_PORT_NAMES if brokers > 1 else ())]


def broker_name(index: int, group: str = MAIN) -> str:
    """Return the process name of a broker."""
    return f"{group}-{index}"


class Pulsar:
    """The brokers of one instance, or the native one beside them. They keep their data and ports over a restart.

    Args:
        jvm: runs the servers.
        workspace: has a port for each of `port_names(brokers, group)`.
        token_directory: the secret key and the tokens, as `tokens.create_all` makes them.
        brokers: 1 is a standalone, 2 a cluster.
        profile: which broker settings.
        line: which Pulsar the jars of `jvm` are.
        address: where brokers serve, and what they tell clients of themselves.
        group: what their processes and ports are called.
    """

    def __init__(
        self,
        jvm: Jvm,
        workspace: Workspace,
        token_directory: Path,
        brokers: int,
        profile: Profile,
        line: PulsarLine = PulsarLine.FOUR,
        address: str = LOOPBACK,
        group: str = MAIN,
    ) -> None:
        self._jvm = jvm
        self._directory = workspace.directory
        self._ports = workspace.ports
        self._reservations = workspace.reservations
        self._processes = workspace.processes
        self._tokens = token_directory
        self._brokers = brokers
        self._profile = profile
        self._line = line
        self._address = address
        self._group = group

    @property
    def access(self) -> PulsarAccess:
        """How the brokers are reached."""
        urls = tuple(f"http://{self._address}:{self._web_port(i)}" for i in range(self._brokers))
        services = ",".join(f"{self._address}:{self._service_port(i)}" for i in range(self._brokers))
        return PulsarAccess(
            admin_url=urls[0],
            service_url=f"pulsar://{services}",
            broker_admin_urls=urls,
            superuser_token_file=tokens.token_file(self._tokens, "superuser"),
            namespace_admin_token_file=tokens.token_file(self._tokens, "namespace-admin"),
            client_token_file=tokens.token_file(self._tokens, "client"),
        )

    def start(self) -> None:
        """Start what is not running, wait until every broker serves, and create the tenancy."""
        self._jvm.prepare()
        if self._brokers > 1:
            self._start_zookeeper()
            self._set_up_metadata()
            self._start_bookie()
        for index in range(self._brokers):
            self._launch(index)
        for index in range(self._brokers):
            self._await_serving(index)
        create_tenancy(self._admin(0))

    def stop(self) -> None:
        """Stop the servers, the dependent ones first. The data stays."""
        below = (METADATA_SETUP, *ENSEMBLE_PORT_NAMES) if self._brokers > 1 else ()
        own = {*(self._name(index) for index in range(self._brokers)), *below}
        for wave in STOP_WAVES:
            self._processes.stop(*(name for name in wave if name in own))

    def restart(self) -> None:
        """Stop and start on the same data and ports."""
        self.stop()
        self.start()

    def stop_broker(self, index: int) -> None:
        """Stop one broker in good order. A standalone takes its bookie and metadata with it."""
        self._processes.stop(self._checked(index))

    def kill_broker(self, index: int) -> None:
        """Kill one broker with SIGKILL, as a crash would."""
        self._processes.kill(self._checked(index))

    def start_broker(self, index: int, *, clock_ahead_seconds: int = 0) -> None:
        """Start a stopped or killed broker on its data and ports, and wait until it serves.

        Args:
            index: counted from 0.
            clock_ahead_seconds: how much later it is for this broker than for everybody else.
        """
        self._checked(index)
        self._launch(index, clock_ahead_seconds)
        self._await_serving(index)

    def _checked(self, index: int) -> str:
        if not 0 <= index < self._brokers:
            raise DevError(f"there is no broker {index}: this instance has {self._brokers}, counted from 0")
        return self._name(index)

    def _launch(self, index: int, clock_ahead_seconds: int = 0) -> None:
        name = self._name(index)
        self._reservations.hand_over(f"{name}-service", f"{name}-web")
        if self._brokers == 1:
            settings = broker_settings.standalone(
                *(self._address, self._service_port(index), self._web_port(index)),
                *(self._tokens, self._profile, self._line),
            )
            arguments = self._standalone_arguments(self._configuration(name, settings))
        else:
            settings = broker_settings.broker(
                *(self._address, self._service_port(index), self._web_port(index), self._ports["zookeeper"]),
                *(self._tokens, self._profile, self._line),
            )
            configuration = str(self._configuration(name, settings))
            arguments = ["org.apache.pulsar.PulsarBrokerStarter", "--broker-conf", configuration]
        # Of these, time until ready is the least: all that the compiler can do pays within minutes.
        options = ("-XX:TieredStopAtLevel=4",) if self._profile is Profile.FLEET else ()
        jvm = replace(self._jvm, options=(*self._jvm.options, *options))
        command = jvm.command(*arguments, heap_mb=BROKER_HEAP_MB[self._profile])
        if clock_ahead_seconds:
            # Time that is measured stays true; only what day and hour it is differs.
            ahead = f"{clock_ahead_seconds:+d}s"
            command = [str(prerequisites.faketime()), "-m", "--exclude-monotonic", "-f", ahead, *command]
        self._processes.start(name, command)

    def _standalone_arguments(self, configuration: Path) -> list[str]:
        return [
            "org.apache.pulsar.PulsarStandaloneStarter",
            *("--config", str(configuration), "--no-functions-worker", "--no-stream-storage"),
            *("--metadata-dir", str(self._directory / "metadata")),
            *("--bookkeeper-dir", str(self._directory / "bookkeeper")),
            *("--advertised-address", self._address),
        ]

    def _await_serving(self, index: int) -> None:
        self._processes.wait_until(self._name(index), lambda: self._serves(index), READY_TIMEOUT_SECONDS)

    def _serves(self, index: int) -> bool:
        # Not /brokers/health: its aborted calls pile up in the broker.
        admin = self._admin(index)
        try:
            namespaces = admin.ask("GET", "namespaces/public", timeout_seconds=ANSWER_TIMEOUT_SECONDS)
            if "public/default" not in namespaces.body:
                return False
            listed = admin.ask("GET", f"brokers/{CLUSTER}", timeout_seconds=ANSWER_TIMEOUT_SECONDS)
        except DevError:
            return False
        return f"{self._address}:{self._web_port(index)}" in listed.body

    def _start_zookeeper(self) -> None:
        self._reservations.hand_over("zookeeper")
        settings = broker_settings.zookeeper(self._ports["zookeeper"], self._directory / "zookeeper")
        configuration = str(self._configuration("zookeeper", settings))
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = self._jvm.command(main_class, configuration, heap_mb=SMALL_HEAP_MB)
        self._processes.start("zookeeper", command)
        self._await_port("zookeeper")

    def _set_up_metadata(self) -> None:
        done = self._directory / "metadata-is-set-up"
        if done.exists():
            return
        store = f"zk:{LOOPBACK}:{self._ports['zookeeper']}"
        arguments = [
            "org.apache.pulsar.PulsarClusterMetadataSetup",
            *("--cluster", CLUSTER, "--metadata-store", store, "--configuration-metadata-store", store),
            *("--web-service-url", self.access.admin_url),
            *("--broker-service-url", self.access.service_url),
        ]
        command = self._jvm.command(*arguments, heap_mb=SMALL_HEAP_MB)
        self._processes.run(METADATA_SETUP, command, READY_TIMEOUT_SECONDS)
        done.touch()

    def _start_bookie(self) -> None:
        self._reservations.hand_over("bookie")
        settings = broker_settings.bookie(
            self._ports["bookie"], self._ports["zookeeper"], self._directory / "bookkeeper"
        )
        configuration = str(self._configuration("bookie", settings))
        main_class = "org.apache.bookkeeper.server.Main"
        # Newer Java names the loopback interface by its IPv6 address first, of which a bookie makes no valid name.
        jvm = replace(self._jvm, options=(*self._jvm.options, "-Djava.net.preferIPv4Stack=true"))
        command = jvm.command(main_class, "--conf", configuration, heap_mb=BOOKIE_HEAP_MB)
        self._processes.start("bookie", command)
        self._await_port("bookie")

    def _await_port(self, name: str) -> None:
        self._processes.wait_until(name, lambda: _accepts(self._ports[name]), READY_TIMEOUT_SECONDS)

    def _configuration(self, name: str, settings: Mapping[str, str]) -> Path:
        file = self._directory / f"{name}.conf"
        file.write_text(broker_settings.render(settings))
        return file

    def _admin(self, index: int) -> PulsarAdmin:
        return PulsarAdmin(self.access.broker_admin_urls[index], self.access.superuser_token)

    def _service_port(self, index: int) -> int:
        return self._ports[f"{self._name(index)}-service"]

    def _web_port(self, index: int) -> int:
        return self._ports[f"{self._name(index)}-web"]

    def _name(self, index: int) -> str:
        return broker_name(index, self._group)


def _accepts(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1):
            return True
    except OSError:
        return False
