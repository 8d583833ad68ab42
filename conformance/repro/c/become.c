#include <sys/syscall.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>

/* Become another user, without capabilities. */
static long become(uid_t uid, gid_t gid, size_t count, const gid_t *groups)
{
	if (syscall(SYS_setgroups, count, groups) || syscall(SYS_setresgid, gid, gid, gid) ||
	    syscall(SYS_setresuid, uid, uid, uid))
		return -1;
	/* Another user clears it. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL);
}
