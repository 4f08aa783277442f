"""What a stream can print.  Not here: the signs themselves (``looks``, ``sparks``)."""


def can_print(text: str, encoding: str) -> bool:
    """Whether ``encoding`` has every sign of ``text``; never in an encoding that nobody knows.

    >>> can_print("✕", "utf-8"), can_print("✕", "latin-1"), can_print("✕", "no-such-encoding")
    (True, False, False)
    """
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
