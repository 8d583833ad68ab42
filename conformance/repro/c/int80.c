/* A system call through the 32-bit entry. */
static long int80(long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
		  unsigned long e, unsigned long f)
{
	int value;

	/* Not push: the stack below may be in use. */
	__asm__ volatile("mov %%rbp, %%r12\n\t"
			 "mov %k[last], %%ebp\n\t"
			 "int $0x80\n\t"
			 "mov %%r12, %%rbp"
			 : "=a"(value)
			 : "a"((int)number), "b"((int)a), "c"((int)b), "d"((int)c), "S"((int)d),
			   "D"((int)e), [last] "r"((int)f)
			 : "memory", "cc", "r8", "r9", "r10", "r11", "r12");
	if (value < 0 && value > -4096) {
		errno = -value;
		return -1;
	}
	return value;
}
