"""One server instance as the operating system sees it: folder, settings file, process, log, SQL client."""
