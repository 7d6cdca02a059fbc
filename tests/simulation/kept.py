"""Stories that once failed: each found a fault, in the operator or in the models, that was mended at its kind."""

from __future__ import annotations

from collections.abc import Mapping

KEPT: Mapping[str, str] = {
    "operations:670": "first segments of two lives were taken for one layout, once a status had been restored",
    "operations:1058": "the model took a layout that was published under a new incarnation for one that was rebuilt",
    "operations:1362": "the same, with a segment pruned meanwhile",
    "operations:257": "an object that went ended a split of a topic that another one had taken over",
    "operations:750": "ids of a creation that was begun anew, written to by producers of the topic's former life",
    "operations:1392": "the model wanted a rebuild to make what vanished in its midst; drift repair does",
    "migrations:2688": "the model's brokers made a layout topic that somebody had deleted when it was published to",
    "migrations:6008": "a half sealed migration of which a segment was gone was finished with the other one",
    "migrations:8588": "a process that slept while it called a migration off took the claim of the next one away",
    "migrations:15596": "the same; the topic was then migrated once more, over what it held",
    "migrations:13360": "a deletion came late for an id that a restored status had given out again",
    "migrations:19444": "the same, once the segment had been sealed",
    "migrations:101803": "a deposed process made segments of ids that a restored status had given out again",
    "migrations:103041": "the same, and its successor had deleted what told of them when the status was lost once more",
    "migrations:103612": "the model let requests outlive a partitioned topic that was deleted for good",
    "migrations:104441": "an object that was gone was given a claim for ever, and what was migrated was migrated again",
    "replicas:21": "one that came when all Leases were deleted led beside the leader, who did not know yet",
    "replicas:139": "the model's consumers attached by the word of a session that was over",
    "replicas:505": "a replica that leaves said that it led what others had taken already",
    "replicas:1420": "a deadline that was rounded two ways had a subscription looked at again and again at one moment",
    "replicas:2750": "a late look at a Lease took it over as it was deleted, though another had taken it in between",
    "replicas:6395": "a late renewal made a deleted Lease anew, and who had slept since took the shard by it",
    "replicas:9400": "one that did not know the topic yet coordinated its subscription, and counted a grace by that",
    "replicas:2540": "a coordinator came back at once, for ever, for a grace that was over while nobody is removed",
    "replicas:16725": "a consumer that had come back for a moment was removed when the grace before was over",
    "replicas:2585": "the model forgot who was attached to a segment that had left the layout and was still there",
    "consumers:19930": "a deposed coordinator did not know of its successor, who had only taken in a consumer",
    "consumers:900": "the model's consumers heard what was sent over a connection that they had no more",
}
"""By story, what it found. Replaying one is cheap; what it tells changes when kinds of faults are added."""
