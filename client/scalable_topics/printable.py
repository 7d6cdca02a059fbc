"""Texts of others, for people to read on a line of a log, a status or a terminal. Pure."""


def printable(text: str, instead: str = " ") -> str:
    """The text without control and format characters.

    Args:
        text: may be anybody's.
        instead: stands where one was.
    """
    # Nearly always it is, and very many are looked at: the object of every call to a broker, for one.
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else instead for character in text)
