"""The command-line commands, each in its own module. Some need the onnx package."""

OK, DIFFERS, CANNOT = 0, 1, 2  # exit statuses
INTERRUPTED = 130  # the status with which shells report SIGINT
UNREAD = 141  # the same for SIGPIPE
