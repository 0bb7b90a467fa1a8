"""One module a published method, and `ask`, which runs one."""
