"""Operations about rights as calls of C."""

from __future__ import annotations

from conformance.program import rights
from conformance.program.operations import Operation
from conformance.program.rights import Capability

_CLONES = {
    rights.CLONE_NEWNS: "CLONE_NEWNS",
    rights.CLONE_NEWUSER: "CLONE_NEWUSER",
    rights.CLONE_NEWPID: "CLONE_NEWPID",
}
_MOUNTS = {
    rights.MS_RDONLY: "MS_RDONLY",
    rights.MS_REMOUNT: "MS_REMOUNT",
    rights.MS_BIND: "MS_BIND",
}


def call(operation: Operation) -> str:
    """The call of an operation.  Raises TypeError for one that has no form."""
    match operation:
        case rights.Become(uid=uid, gid=gid, groups=groups, keep=keep):
            kept = "prctl(PR_SET_KEEPCAPS, 1); " if keep else ""
            listed = ", ".join(map(str, groups))
            told = f"setgroups({len(groups)}, (gid_t[]){{{listed}}})"
            ids = f"setresgid({gid}, {gid}, {gid}); setresuid({uid}, {uid}, {uid})"
            return f"{kept}{told}; {ids}"
        case rights.Capset(permitted=permitted, effective=effective):
            shown = f"permitted {_capabilities(permitted)}, effective {_capabilities(effective)}"
            return f"capset(v3, {shown})"
        case rights.NoNewPrivileges():
            return "prctl(PR_SET_NO_NEW_PRIVS, 1)"
        case rights.Seccomp(refused=refused, errno=errno):
            listed = ", ".join(refused)
            return f"seccomp(SECCOMP_SET_MODE_FILTER, 0, /* {listed}: {errno} */)"
        case rights.Unshare(flags=flags):
            return f"unshare({_flags(flags, _CLONES)})"
        case rights.Chroot(path=path):
            return f'chroot("{path}")'
        case rights.Mount(source=source, target=target, kind=kind, flags=flags):
            options = f'"{operation.options}"' if operation.options else "0"
            return f'mount("{source}", "{target}", "{kind}", {_flags(flags, _MOUNTS)}, {options})'
        case rights.Umount(target=target):
            return f'umount2("{target}", MNT_DETACH)'
        case rights.Mknod(path=path):
            return f'mknod("{path}", S_IFREG | 0600, 0)'
        case rights.Mkdir(path=path):
            return f'mkdir("{path}", 0755)'
        case rights.Chmod(path=path, mode=mode):
            return f'chmod("{path}", 0{mode:o})'
        case rights.Chown(path=path, uid=uid, gid=gid):
            return f'chown("{path}", {uid}, {gid})'
        case rights.Ownership(path=path):
            return f'stat("{path}", &st), st.st_uid, st.st_gid'
        case rights.Getdents(slot=slot):
            return f"getdents64(fd{slot}, buffer, sizeof(buffer))"
    raise TypeError(f"operation without a form in C: {operation!r}")


def _flags(bits: int, names: dict[int, str]) -> str:
    return " | ".join(name for bit, name in names.items() if bits & bit) or "0"


def _capabilities(bits: int) -> str:
    if bits == rights.EVERYTHING:
        return "all"
    return " | ".join(f"CAP_{each.name}" for each in Capability if bits >> each & 1) or "none"
