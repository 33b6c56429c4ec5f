"""The commands of the command line. Code that needs the onnx package is imported with them."""

OK, DIFFERS, CANNOT = 0, 1, 2  # exit statuses
INTERRUPTED = 130  # the shells' status for a process ended by a signal: SIGINT
UNREAD = 141  # SIGPIPE
