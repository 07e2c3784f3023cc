#!/usr/bin/env python3
"""filtered.py UNIT COMMAND...: runs a command with the system calls, capabilities and umask that a unit of systemd allows.

FILTERED_USER is the id of the user and group that runs it; only root may name another one. The sets of calls are those of the installed systemd (`systemd-analyze syscall-filter`); calls outside fail as the unit says.
"""
import ctypes
import errno
import os
import re
import subprocess
import sys

ACT_ALLOW = 0x7FFF0000
ACT_ERRNO = 0x00050000
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
CAP_NET_BIND_SERVICE = 10


def read_unit(path):
    values = {}
    with open(path, encoding="utf-8") as unit:
        for line in unit:
            name, sign, value = line.strip().partition("=")
            if sign and not name.startswith("#"):
                values.setdefault(name, []).append(value)
    return values


def list_calls(name):
    if not name.startswith("@"):
        return {name}
    run = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True)
    calls = set()
    for line in run.stdout.splitlines():
        word = line.strip()
        if line.startswith("    ") and re.fullmatch(r"@?[a-z0-9_-]+", word):
            calls |= list_calls(word)
    return calls


def list_allowed(filters):
    allowed = set()
    for line in filters:
        taken = line.startswith("~")
        for name in line.lstrip("~").split():
            allowed = allowed - list_calls(name) if taken else allowed | list_calls(name)
    return allowed


def apply_filter(allowed, code):
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ACT_ERRNO | code)))
    for name in sorted(allowed):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        # Calls of other architectures.
        if number >= 0:
            seccomp.seccomp_rule_add(context, ctypes.c_uint32(ACT_ALLOW), number, 0)
    if seccomp.seccomp_load(context) != 0:
        sys.exit("the filter could not be loaded")


def main():
    unit = read_unit(sys.argv[1])
    allowed = list_allowed(unit["SystemCallFilter"])
    code = getattr(errno, unit["SystemCallErrorNumber"][0])
    os.umask(int(unit["UMask"][0], 8))
    libc = ctypes.CDLL(None)
    for capability in range(64):
        if capability != CAP_NET_BIND_SERVICE:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    user = int(os.environ.get("FILTERED_USER", os.getuid()))
    if user != os.getuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    apply_filter(allowed, code)
    os.execvp(sys.argv[2], sys.argv[2:])


main()
