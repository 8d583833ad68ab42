#include <sys/syscall.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/uio.h>

/* One write through an io_uring of its own; the result in its completion. */
static long submit(int operation, int descriptor, unsigned long address, unsigned int count,
		   unsigned long offset)
{
	struct iovec buffer = { (void *)address, count };
	struct io_uring_params params = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
	struct io_uring_cqe *completion;
	struct io_uring_sqe *entry;
	char *rings;
	long value = -1;

	if (ring < 0)
		return -1;
	rings = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	entry = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	if (rings == MAP_FAILED || entry == MAP_FAILED)
		return -1;
	if (operation == IORING_OP_WRITE_FIXED &&
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) < 0)
		return -1;
	*entry = (struct io_uring_sqe){
		.opcode = (__u8)operation, .fd = descriptor, .off = offset, .addr = address,
		.len = count,
	};
	*(__u32 *)(rings + params.sq_off.array) = 0;
	*(__u32 *)(rings + params.sq_off.tail) = 1;
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0) {
		completion = (struct io_uring_cqe *)(rings + params.cq_off.cqes);
		value = completion->res;
		if (value < 0) {
			errno = (int)-value;
			value = -1;
		}
	}
	munmap(rings, 4096);
	munmap(entry, 4096);
	close(ring);
	return value;
}
