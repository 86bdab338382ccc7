"""The one exception for input that a user can correct."""


class InputError(ValueError):
    """Bad input: a file, a key or a value. The message is for the user and names what is wrong.

    The command line prints it without a traceback and ends with exit code 2.
    """
