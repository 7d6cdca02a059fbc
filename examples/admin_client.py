"""Manage a scalable topic through the gateway: `admin_client.py http://localhost:8081 topic://acme/shop/orders`.

Needs `pip install scalable-topics[client]`, a token made for audience `scalable-topics` in the file that
GATEWAY_TOKEN_FILE names, and a connection that maps the Pulsar namespace to a Kubernetes one; GATEWAY_CA_FILE is the
CA bundle of a gateway with TLS.
"""

import asyncio
import os
import sys

from scalable_topics.admin import AdminClient, AutoScalePolicy, GatewayOptions, SubscriptionType


async def main(url: str, topic: str) -> None:
    """Create a topic, subscribe to it, split its first segment, and say what it does from now on."""
    gateway = GatewayOptions(
        url, token_file=os.environ["GATEWAY_TOKEN_FILE"], ca_file=os.environ.get("GATEWAY_CA_FILE")
    )
    async with AdminClient(gateway) as admin:
        await admin.wait(await admin.create_topic(topic, segments=2, properties={"team": "shop"}))
        await admin.wait(await admin.create_subscription(topic, "billing", type=SubscriptionType.QUEUE))

        planned = await admin.split_segment(topic, 0, dry_run=True)
        print("a split would:", planned.plan.message if planned.plan else "")
        split = await admin.wait(await admin.split_segment(topic, 0))
        print("done by", split.operation)
        for segment in await admin.get_segments(topic):
            print(segment, segment.state)

        await admin.set_auto_scale_policy(topic, AutoScalePolicy(max_segments=16, split_cooldown_seconds=60))
        print("override:", (await admin.get_topic(topic)).auto_scale_policy)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
