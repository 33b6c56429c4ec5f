"""The commands of the command line: what needs the onnx package is imported with them."""

OK, DIFFERS, CANNOT = 0, 1, 2  # exit statuses
INTERRUPTED = 130  # as shells say it of a process that a signal ended: SIGINT
UNREAD = 141  # SIGPIPE
