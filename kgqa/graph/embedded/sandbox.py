"""A sandbox that denies worker processes access to the network.

Queries with SERVICE or LOAD are refused before they reach a worker (`query.tokens`). In addition, on Linux the worker
process gives up the system calls that create sockets (seccomp in filter mode, see seccomp(2)).
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
# for each machine type: the audit number of its ABI, and the numbers of the system calls socket and io_uring_setup
_MACHINES = {
    "x86_64": (0xC000003E, 41, 425),
    "aarch64": (0xC00000B7, 198, 425),
}
_X32_BIT = 0x40000000
# the codes of instructions of the filter, and its results
_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EACCES
_OFFSET_NUMBER, _OFFSET_MACHINE = 0, 4


def deny_network() -> bool:
    """Give up the right to create sockets, for this thread and its future threads and processes. This cannot be undone.

    Returns:
        True if sockets are denied now; False on systems other than Linux, on unknown machine types, and on kernels
        without seccomp.
    """
    known = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or known is None or sys.maxsize < 1 << 32:
        return False
    machine, socket_call, ring_call = known
    steps = [
        (_LOAD, 0, 0, _OFFSET_MACHINE),
        (_JUMP_EQUAL, 0, 4, machine),  # refused: a different ABI has different call numbers
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_AT_LEAST, 2, 0, _X32_BIT),
        (_JUMP_EQUAL, 1, 0, socket_call),
        (_JUMP_EQUAL, 0, 1, ring_call),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(instructions)))
    try:
        call = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
    if call(_PR_SET_NO_NEW_PRIVS, 1, None, 0, 0) != 0:
        return False
    status: int = call(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(program), 0, 0)
    return status == 0
