"""The errors that the command line reports to its users."""


class SuiteError(ValueError):
    """Something that a user passed cannot be used. The text says what, and how to correct it."""
