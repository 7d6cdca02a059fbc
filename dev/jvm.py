"""The command line of a Java server: small memory, quick start, and the modules Pulsar needs opened."""

from dataclasses import dataclass
from pathlib import Path

OPENED_PACKAGES = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.nio",
    "java.base/java.util.zip",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.misc",
    "java.base/jdk.internal.platform",
    "java.base/sun.nio.ch",
    "java.management/sun.management",
    "jdk.management/com.sun.management.internal",
)
DIRECT_MEMORY_MB = 300

LOG_CONFIGURATION = """\
<Configuration status="WARN">
  <Appenders>
    <Console name="console">
      <PatternLayout pattern="%d{ISO8601} [%t] %-5level %logger{1} - %msg%n"/>
    </Console>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.pulsar.broker.service.persistent.PersistentTopic" level="info"/>
    <Root level="warn"><AppenderRef ref="console"/></Root>
  </Loggers>
</Configuration>
"""


@dataclass(frozen=True, slots=True)
class Jvm:
    """A Java runtime with the Pulsar jars.

    Attributes:
        executable: the `java` command.
        jars: directory of the jars.
        directory: for temporary files, such as unpacked native libraries, and the log configuration.
        options: further options of the runtime.
        classes: directory of classes of our own, which go before those of the jars; None if there are none.
    """

    executable: Path
    jars: Path
    directory: Path
    options: tuple[str, ...] = ()
    classes: Path | None = None

    def prepare(self) -> None:
        """Write the files that every command refers to."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        self._log_configuration.write_text(LOG_CONFIGURATION)

    def command(self, main_class: str, *arguments: str, heap_mb: int) -> list[str]:
        """Return the command that runs a class.

        Args:
            main_class: its full name.
            arguments: passed to it.
            heap_mb: upper bound of the heap in MiB.
        """
        class_path = [f"{self.jars}/*"] if self.classes is None else [str(self.classes), f"{self.jars}/*"]
        opens = [part for package in OPENED_PACKAGES for part in ("--add-opens", f"{package}=ALL-UNNAMED")]
        return [
            str(self.executable),
            *(f"-Xmx{heap_mb}m", f"-XX:MaxDirectMemorySize={DIRECT_MEMORY_MB}m", "-XX:+UseSerialGC"),
            # The first compiler tier only: a third less processor time until ready, on which tests wait.
            *("-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"),
            *self.options,
            *opens,
            "-Dio.netty.tryReflectionSetAccessible=true",
            f"-Dlog4j.configurationFile={self._log_configuration}",
            f"-Djava.io.tmpdir={self._temporary}",
            *("-cp", ":".join(class_path), main_class),
            *arguments,
        ]

    @property
    def _temporary(self) -> Path:
        return self.directory / "tmp"

    @property
    def _log_configuration(self) -> Path:
        return self.directory / "log4j2.xml"
