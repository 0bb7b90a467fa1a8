"""The question answering methods, one module per published method, and `ask`, which runs one."""
