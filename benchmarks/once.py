"""Timed benchmarks that are set up once, however often asv calls `setup`."""

REPEAT = (10, 500, 0.3)  # samples: least, most, and the seconds after which there are no more


class OneSetup:
    """
    A benchmark whose `prepare` runs once for its parameters.

    asv sets a benchmark up before each call that it times, and then times this call alone. New arrays each time would
    be cold, and their page faults would count.
    """

    repeat = REPEAT
    prepared = None

    def setup(self, *params):
        if self.prepared != params:
            self.prepare(*params)
            self.prepared = params
