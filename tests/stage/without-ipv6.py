"""Runs a program as on a machine without IPv6: `socket` fails with EAFNOSUPPORT, as with the kernel's ipv6.disable=1.

A seccomp filter, see Linux Documentation/userspace-api/seccomp_filter.rst. Usage: without-ipv6.py PROGRAM ARGUMENTS…
"""

import ctypes
import os
import platform
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}[platform.machine()]
AF_INET6, EAFNOSUPPORT = 10, 97
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

# Offsets in struct seccomp_data: 0 the number of the system call, 16 the lower half of its first argument.
filters = [
    (LOAD, 0, 0, 0),
    (JUMP_IF_EQUAL, 0, 3, SOCKET),
    (LOAD, 0, 0, 16),
    (JUMP_IF_EQUAL, 0, 1, AF_INET6),
    (RETURN, 0, 0, ERRNO | EAFNOSUPPORT),
    (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in filters))
program = struct.pack("HxxxxxxP", len(filters), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
for arguments in (
    (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program), 0, 0),
):
    if libc.prctl(*arguments) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
