"""Message ids: comparing, storing, refusing."""

import pulsar
import pytest

from scalable_topics.sdk import ClientError, MessageId


def place(entry: int, batch_index: int = -1) -> object:
    return pulsar.MessageId(-1, 7, entry, batch_index)._msg_id


def test_ids_are_equal_by_segment_and_place() -> None:
    assert MessageId(1, place(2)) == MessageId(1, place(2))
    assert len({MessageId(1, place(2)), MessageId(1, place(2)), MessageId(2, place(2)), MessageId(1, place(3))}) == 3
    assert MessageId(1, place(2, 0)) != MessageId(1, place(2, 1))
    assert MessageId(1) != "1"


@pytest.mark.parametrize("position", [None, place(2), place(2, 4)])
def test_they_survive_storing(position: object) -> None:
    message_id = MessageId(2**40, position)
    again = MessageId.deserialize(message_id.serialize())
    assert again == message_id
    assert again.is_deserialized
    assert (again.ledger_id, again.entry_id) == (message_id.ledger_id, message_id.entry_id)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02" + bytes(8), b"\x01" + bytes(8) + b"nonsense"])
def test_others_are_refused(data: bytes) -> None:
    with pytest.raises(ClientError):
        MessageId.deserialize(data)


def test_they_show_where_they_are() -> None:
    assert repr(MessageId(3, place(9))) == "MessageId(segment 3 at 7:9:-1)"
    assert repr(MessageId(3)) == "MessageId(segment 3 at ?)"
