"""The one exception for input that a user can correct."""

import re

_BREAKS = re.compile("\\s*[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]\\s*")


class InputError(ValueError):
    """Bad input: a file, a key or a value. The message is for the user and names what is wrong, in one line, whatever
    the names in it hold.

    The command line prints it without a traceback and ends with exit code 2.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_BREAKS.sub(" ", message))
