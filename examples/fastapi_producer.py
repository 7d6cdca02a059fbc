"""Take orders by HTTP and send them to a scalable topic, in the order of each customer: `uvicorn fastapi_producer:app`.

Needs `pip install scalable-topics[client] fastapi uvicorn`. PULSAR_SERVICE_URL and TOPIC name what it sends to, a token
is taken from PULSAR_TOKEN if it is set. An order is answered once a broker has stored it. Whoever waits for the answer
before the customer's next order has them stored in that order, whichever replicas of the service are asked.
"""

import asyncio
import json
import logging
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

import pulsar
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from scalable_topics.sdk import (
    Client,
    ClientError,
    Producer,
    SendError,
    SendOutcomeUnknownError,
    SendTimeoutError,
)

MOST_BODY_BYTES = 16 * 1024
RETRY_SECONDS = 5
# Less than what those who ask, and proxies on the way, usually wait; and than what a pod is given to end.
TIMEOUT_SECONDS = 10

logger = logging.getLogger("uvicorn.error")


class Order(BaseModel):
    """What is asked for; consumers know by the id what was sent again."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=100)
    customer: str = Field(min_length=1, max_length=100)
    article: str = Field(min_length=1, max_length=100)
    quantity: int = Field(ge=1, le=1000)


class Stored(BaseModel):
    """Where it is stored: `MessageId.deserialize(bytes.fromhex(message_id))`."""

    message_id: str
    segment_id: int


class Outlet:
    """The producer, as soon as there is one."""

    def __init__(self, client: Client, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._producer: Producer | None = None
        self._trouble = ClientError(f"a producer on {topic} is being attached")

    @property
    def producer(self) -> Producer:
        """The producer; raises what keeps it from being there."""
        if self._producer is None:
            # Else each request that is refused would leave its traceback in it.
            raise self._trouble.with_traceback(None)
        return self._producer

    async def attach(self) -> None:
        """Try until it succeeds: the service may be there before its topic, and before the brokers."""
        while self._producer is None:
            try:
                self._producer = await self._client.producer(self._topic, send_timeout_seconds=TIMEOUT_SECONDS)
            except ClientError as error:
                self._trouble = error
                logger.warning("no producer yet: %s", error)
                await asyncio.sleep(random.uniform(RETRY_SECONDS / 2, RETRY_SECONDS))


class State(TypedDict):
    """What requests share."""

    outlet: Outlet


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[State]:
    """One client and one producer for the whole life of the process; closing waits for what is under way."""
    token = os.environ.get("PULSAR_TOKEN")
    authentication = pulsar.AuthenticationToken(token) if token else None
    service_url = os.environ["PULSAR_SERVICE_URL"]
    async with Client(service_url, authentication, operation_timeout_seconds=TIMEOUT_SECONDS) as client:
        outlet = Outlet(client, os.environ["TOPIC"])
        attaching = asyncio.create_task(outlet.attach())
        yield {"outlet": outlet}
        attaching.cancel()
        await asyncio.gather(attaching, return_exceptions=True)


def outlet_of(request: Request) -> Outlet:
    """The outlet of the process."""
    outlet: Outlet = request.state.outlet
    return outlet


app = FastAPI(title="orders", lifespan=lifespan, max_body_size=MOST_BODY_BYTES)
Orders = Annotated[Outlet, Depends(outlet_of)]


@app.post("/orders", status_code=202)
async def take_order(order: Order, orders: Orders) -> Stored:
    """Store an order. Where there is no room it is refused at once, since waiting callers would only become more."""
    stored = await orders.producer.send_nowait(order.model_dump_json().encode(), key=order.customer)
    return Stored(message_id=stored.serialize().hex(), segment_id=stored.segment_id)


@app.get("/healthz")
async def is_alive() -> dict[str, str]:
    """Whether the process serves; restarting it would help against nothing else."""
    return {"status": "alive"}


@app.get("/readyz")
async def is_ready(orders: Orders) -> dict[str, str]:
    """Whether it can take orders."""
    return {"status": "ready", "topic": orders.producer.topic}


@app.exception_handler(RequestValidationError)
async def refuse(request: Request, error: RequestValidationError) -> Response:
    """Say what is wrong with an order, and do not repeat it: it may hold what no answer can, half a character say."""
    faults = [{"loc": fault["loc"], "msg": fault["msg"]} for fault in error.errors()]
    return Response(json.dumps({"detail": faults}), 422, media_type="application/json")


@app.exception_handler(ClientError)
async def explain(request: Request, error: ClientError) -> JSONResponse:
    """Say what became of the order, and whether to send it again."""
    logger.warning("%s %s: %s", request.method, request.url.path, error)
    match error:
        case SendOutcomeUnknownError():
            # It may be stored: sent again, it may be there twice.
            return JSONResponse({"detail": str(error)}, 504)
        case SendError() if not isinstance(error, SendTimeoutError):
            # No broker takes it, however often it is sent.
            return JSONResponse({"detail": str(error)}, 500)
    # Nothing is stored: no topic, no broker, no room, or this process ends.
    return JSONResponse({"detail": str(error)}, 503, {"Retry-After": str(RETRY_SECONDS)})
