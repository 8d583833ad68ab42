"""Operations about rights as calls of C."""

from __future__ import annotations

from conformance.ops import credentials
from conformance.ops.credentials import Capability
from conformance.ops.syscalls import Operation

_CLONES = {
    credentials.CLONE_NEWNS: "CLONE_NEWNS",
    credentials.CLONE_NEWUSER: "CLONE_NEWUSER",
    credentials.CLONE_NEWPID: "CLONE_NEWPID",
}
_MOUNTS = {
    credentials.MS_RDONLY: "MS_RDONLY",
    credentials.MS_REMOUNT: "MS_REMOUNT",
    credentials.MS_BIND: "MS_BIND",
}


def call(operation: Operation) -> str:
    """The call of an operation.  Raises TypeError for one that has no form."""
    match operation:
        case credentials.Become(uid=uid, gid=gid, groups=groups, keep=keep):
            kept = "prctl(PR_SET_KEEPCAPS, 1); " if keep else ""
            listed = ", ".join(map(str, groups))
            told = f"setgroups({len(groups)}, (gid_t[]){{{listed}}})"
            ids = f"setresgid({gid}, {gid}, {gid}); setresuid({uid}, {uid}, {uid})"
            return f"{kept}{told}; {ids}"
        case credentials.Capset(permitted=permitted, effective=effective):
            shown = f"permitted {_capabilities(permitted)}, effective {_capabilities(effective)}"
            return f"capset(v3, {shown})"
        case credentials.NoNewPrivileges():
            return "prctl(PR_SET_NO_NEW_PRIVS, 1)"
        case credentials.Seccomp(refused=refused, errno=errno):
            listed = ", ".join(refused)
            return f"seccomp(SECCOMP_SET_MODE_FILTER, 0, /* {listed}: {errno} */)"
        case credentials.Unshare(flags=flags):
            return f"unshare({_flags(flags, _CLONES)})"
        case credentials.Chroot(path=path):
            return f'chroot("{path}")'
        case credentials.Mount(source=source, target=target, kind=kind, flags=flags):
            options = f'"{operation.options}"' if operation.options else "0"
            return f'mount("{source}", "{target}", "{kind}", {_flags(flags, _MOUNTS)}, {options})'
        case credentials.Umount(target=target):
            return f'umount2("{target}", MNT_DETACH)'
        case credentials.Mknod(path=path):
            return f'mknod("{path}", S_IFREG | 0600, 0)'
        case credentials.Mkdir(path=path):
            return f'mkdir("{path}", 0755)'
        case credentials.Chmod(path=path, mode=mode):
            return f'chmod("{path}", 0{mode:o})'
        case credentials.Chown(path=path, uid=uid, gid=gid):
            return f'chown("{path}", {uid}, {gid})'
        case credentials.Ownership(path=path):
            return f'stat("{path}", &st), st.st_uid, st.st_gid'
        case credentials.Getdents(slot=slot):
            return f"getdents64(fd{slot}, buffer, sizeof(buffer))"
    raise TypeError(f"operation without a form in C: {operation!r}")


def _flags(bits: int, names: dict[int, str]) -> str:
    return " | ".join(name for bit, name in names.items() if bits & bit) or "0"


def _capabilities(bits: int) -> str:
    if bits == credentials.EVERYTHING:
        return "all"
    return " | ".join(f"CAP_{each.name}" for each in Capability if bits >> each & 1) or "none"
