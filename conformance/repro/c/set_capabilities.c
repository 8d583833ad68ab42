#include <sys/syscall.h>
#include <linux/capability.h>

static long set_capabilities(unsigned long permitted, unsigned long effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = {
		{ .effective = (__u32)effective, .permitted = (__u32)permitted },
		{ .effective = effective >> 32, .permitted = permitted >> 32 },
	};

	return syscall(SYS_capset, &header, sets);
}
