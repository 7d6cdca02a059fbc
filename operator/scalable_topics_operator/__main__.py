"""`python -m scalable_topics_operator`: the operator's command."""

from __future__ import annotations

import asyncio
import signal
import sys

from scalable_topics_operator.cluster.installation import InstallationMismatch
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.gateway.server import GatewayUnusable
from scalable_topics_operator.operator_process import OperatorProcess
from scalable_topics_operator.settings import OperatorSettings, parse_settings
from scalable_topics_operator.telemetry.logs import configure_logging


async def _run(settings: OperatorSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def take_signals() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    take_signals()
    await OperatorProcess(settings, take_signals).run(stop)


def main() -> None:
    """Run the operator until SIGTERM or SIGINT."""
    settings = parse_settings(sys.argv[1:])
    configure_logging(settings.log_level, plain=settings.plain_logs)
    try:
        asyncio.run(_run(settings))
    except (NoKubernetes, KubeError, InstallationMismatch, GatewayUnusable) as error:
        sys.exit(f"scalable-topics-operator: {error}")


if __name__ == "__main__":
    main()
