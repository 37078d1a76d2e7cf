"""Restrict this process with Landlock, drop root's capabilities, then become the given program.

A standalone script that uses only the standard library; nothing imports it.

Arguments: the folder of the package landlockpy, the granted access as JSON, ``--``, the program and its arguments.
"""

import ctypes
import json
import os
import sys

CAPABILITIES = 64
"""More than exist: dropping stops at the first unknown one."""
BOUNDING_SET_DROP, NO_NEW_PRIVILEGES, AMBIENT = 24, 38, 47
CLEAR_ALL = 4
VERSION_3 = 0x20080522


def drop_capabilities() -> None:
    """Drop all capabilities of this process and its children, even as root.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(CAPABILITIES):
        if libc.prctl(BOUNDING_SET_DROP, number, 0, 0, 0):
            break
    libc.prctl(AMBIENT, CLEAR_ALL, 0, 0, 0)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.capset((ctypes.c_uint32 * 2)(VERSION_3, 0), (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")


def main() -> None:
    folder, granted, argv = sys.argv[1], json.loads(sys.argv[2]), sys.argv[4:]
    sys.path.append(folder)
    from landlockpy import AccessFS, AccessNet, Ruleset, Scope, abi_version, fs_for_abi  # noqa: PLC0415 - found above

    if not abi_version():
        sys.exit("the kernel has no Landlock")
    everything = fs_for_abi(abi_version())
    reading = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.READ_DIR
    of_files = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.IOCTL_DEV
    net = AccessNet.NONE if granted["network"] else None
    with Ruleset(handled_net=net, scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL) as rules:
        for paths, access in ((granted["read"], reading), (granted["write"], everything)):
            for path in paths:
                try:
                    rules.allow_path(path, access if os.path.isdir(path) else access & of_files)  # noqa: PTH112 - quick
                except OSError:
                    # A path that no longer exists needs no access.
                    continue
        rules.restrict()
    if os.geteuid() == 0:
        drop_capabilities()
    os.execv(argv[0], argv)  # noqa: S606 - its whole purpose


if __name__ == "__main__":
    main()
