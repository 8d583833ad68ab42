#include <sys/syscall.h>
#include <grp.h>

/* Become another user, without capabilities. */
static long become(uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
	if (syscall(SYS_setgroups, count, groups) || syscall(SYS_setresgid, gid, gid, gid))
		return -1;
	return syscall(SYS_setresuid, uid, uid, uid);
}
