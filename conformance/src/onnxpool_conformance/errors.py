"""The errors that the command line reports to its users."""


class SuiteError(ValueError):
    """Something that a user gave cannot be used; the text says what, and how to correct it."""
