"""Turns a Pulsar broker's answer into one short text and an error of `operations.errors`. Pure."""

from __future__ import annotations

import html
import re
from enum import Enum

from scalable_topics.layout.json_fields import parse_json
from scalable_topics.printable import printable
from scalable_topics_operator.operations.errors import (
    AccessDenied,
    BackendError,
    BackendRefused,
    BackendUnavailable,
    ClientsAttached,
    LogFenced,
    NamespaceMissing,
    NameTaken,
    TopicEmpty,
    TopicMissing,
)

MAX_REASON_CHARACTERS = 300
# Looking for the end of what has none takes the square of the length.
_MOST_PAGE_CHARACTERS, _MOST_TITLE_CHARACTERS = 8192, 1000
_UNEXPECTED = "--- An unexpected error occurred in the server ---"
_MESSAGE_LINE = re.compile(r"^Message:[ \t]*(.*)$", re.MULTILINE)
_HTML_MESSAGE = re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)</td>", re.IGNORECASE | re.DOTALL)
_HTML_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_EXCEPTION_PREFIX = re.compile(r"^(?:[a-z][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error):\s*")

# Texts of a broker that is loading, unloading or handing over; asking again helps.
_TRANSIENT = re.compile(
    r"being unloaded|is unloading|not owned|not served by|find (?:the )?owner|acquire ownership|redo the lookup|"
    r"service unit is not ready|serviceunitnotready|pulsar service is not ready|not ready for acquiring|"
    r"topic is (?:temporarily unavailable|fenced|(?:already )?closed|being)|fenced topic|fencedexception|is fenced|"
    r"failed to fence subscription|"
    r"is being (?:deleted|transferred|closed|created)|already (?:been )?closed|unable to persist|"
    r"topic policies cache|last message id was failed|concurrent modification|bad ?version|session ?expired|"
    r"connection ?loss|too many requests|timed ?out|timeoutexception|no (?:available )?brokers?\b",
    re.IGNORECASE,
)
_NAMESPACE_MISSING = re.compile(
    r"(?:namespace|tenant|property)\b.{0,200}?\b(?:not found|does not exist|not exist)|policies not found",
    re.IGNORECASE,
)
_TOPIC_MISSING = re.compile(
    r"topic\b.{0,400}?\b(?:not found|does not exist|not exist)|^segment \d+ not found in scalable topic", re.IGNORECASE
)
_SUBSCRIPTION_MISSING = re.compile(r"^subscription\b.{0,300}?\b(?:not found|does not exist)", re.IGNORECASE)
_TOPIC_EMPTY = re.compile(r"total message is zero", re.IGNORECASE)
_LOG_FENCED = re.compile(r"fenced managed ledger", re.IGNORECASE)
# What a user did wrong and Pulsar 5 answers 500 for (measured).
_LAYOUT_REFUSED = re.compile(
    r"cannot split non-active segment|^segment not found|segments are not adjacent|both segments must be active|"
    r"cannot (?:split|merge|rebucket)\b|bucket ?count",
    re.IGNORECASE,
)
_CLIENTS_ATTACHED = re.compile(
    r"has \d+ (?:clients? connected|connected)|active connected consumers|connected producers|"
    r"active (?:producers|consumers|clients)",
    re.IGNORECASE,
)


class About(Enum):
    """The kind of object a request names; decides what a 404 without explanation means."""

    CLUSTER = "cluster"
    NAMESPACE = "namespace"
    TOPIC = "topic"


def plain(text: str) -> str:
    """One line without control or format characters, at most 300 characters (R3)."""
    line = " ".join(printable(text).split())
    if len(line) <= MAX_REASON_CHARACTERS:
        return line
    return line[: MAX_REASON_CHARACTERS - 1] + "…"


def reason_of(status: int, content_type: str, body: str) -> str:
    """The broker's explanation in a response, fit for a condition.

    Understands `{"reason": ...}`, plain text, the HTML of Jetty, and 500s that carry a stack trace (also
    inside `reason`), of which only the message is kept. Answers `HTTP <status>` when there is none.
    """
    text = body.strip()
    if text.startswith("{"):
        try:
            answer = parse_json(text)
        except ValueError:
            answer = {"reason": text}
        text = str(answer.get("reason") or answer.get("message") or "")
    if "html" in content_type or text[:14].lower().startswith(("<html", "<!doctype")):
        page = text[:_MOST_PAGE_CHARACTERS]
        found = _HTML_MESSAGE.search(page) or _HTML_TITLE.search(page)
        text = html.unescape(_TAG.sub(" ", found.group(1)[:_MOST_TITLE_CHARACTERS])) if found else ""
    if _UNEXPECTED in text:
        message = _MESSAGE_LINE.search(text)
        text = message.group(1) if message else ""
    else:
        text = text.split("\n\tat ", 1)[0]
    text = text.strip()
    while (shorter := _EXCEPTION_PREFIX.sub("", text)) != text and shorter:
        text = shorter
    return plain(text) or f"HTTP {status}"


def is_transient(status: int, reason: str) -> bool:
    """Whether the same request may succeed when it is sent again a moment later."""
    if status in (408, 425, 429, 502, 503, 504):
        return True
    if status in (401, 403, 404):
        return False
    return status in (409, 412, 500) and _TRANSIENT.search(reason) is not None


def is_subscription_missing(reason: str) -> bool:
    """Whether the reason of a 404 is a missing subscription of a topic that does exist."""
    return _SUBSCRIPTION_MISSING.search(reason) is not None


def error_for(what: str, status: int, reason: str, about: About, *, right: str | None = None) -> BackendError:
    """The error for an answer that is no success.

    Args:
        what: operation and object, for example `terminate persistent://t/n/x`.
        status: HTTP status.
        reason: from `reason_of`.
        about: what a bare 404 is about.
        right: the right the call needs, named when it was denied.
    """
    message = f"{what}: {reason}" if reason == f"HTTP {status}" else f"{what}: {reason} (HTTP {status})"
    kind = _kind(status, reason, about)
    if kind is AccessDenied:
        if status == 401 and not is_authorization_refusal(reason):
            message += "; the cluster does not accept the connection's credentials"
        elif right is not None:
            message += f"; the connection's role needs: {right}"
    return kind(message)


def is_authorization_refusal(reason: str) -> bool:
    """Whether a 401 says that a known role lacks a right (Pulsar uses 401 for that too)."""
    return re.search(r"unauthorized to|permission|super-?user|not authorized", reason, re.IGNORECASE) is not None


def _kind(status: int, reason: str, about: About) -> type[BackendError]:
    if status == 500 and _LOG_FENCED.search(reason):
        return LogFenced
    if is_transient(status, reason):
        return BackendUnavailable
    if status in (401, 403):
        return AccessDenied
    if status == 404:
        return _missing(reason, about)
    if status == 409 and about is About.TOPIC and re.search(r"already exist", reason, re.IGNORECASE):
        return NameTaken
    if status in (409, 412) and _CLIENTS_ATTACHED.search(reason):
        return ClientsAttached
    if status == 412 and about is About.TOPIC and _TOPIC_MISSING.search(reason):
        return TopicMissing
    if status == 412 and about is About.TOPIC and _TOPIC_EMPTY.search(reason):
        return TopicEmpty
    if status == 500 and _CLIENTS_ATTACHED.search(reason):
        return ClientsAttached
    if status == 500 and _LAYOUT_REFUSED.search(reason):
        return BackendRefused
    return BackendUnavailable if status >= 500 and status != 501 else BackendRefused


def _missing(reason: str, about: About) -> type[BackendError]:
    if about is About.CLUSTER:
        return BackendRefused
    if _NAMESPACE_MISSING.match(reason):
        return NamespaceMissing
    if about is About.NAMESPACE:
        return NamespaceMissing if reason == "HTTP 404" else BackendRefused
    if reason == "HTTP 404" or _TOPIC_MISSING.search(reason):
        return TopicMissing
    # "Not Found" of the web server itself: this broker has no such call.
    return BackendRefused
