"""Whether a server of the node says that it is well."""

import http.client

from dev.node.network import NODE_ADDRESS

ANSWER_TIMEOUT_SECONDS = 5


def is_well(port: int, path: str) -> bool:
    """Ask the server at a port of the node's address. Within the network."""
    connection = http.client.HTTPConnection(NODE_ADDRESS, port, timeout=ANSWER_TIMEOUT_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (http.client.HTTPException, OSError):
        return False
    finally:
        connection.close()
