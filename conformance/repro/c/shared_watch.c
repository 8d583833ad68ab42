#define WATCH(actor, address, content, length) \
	do { \
		if (me == MAIN) \
			watch(actor, address, content, length); \
	} while (0)
#define UNWATCH(actor, address) \
	do { \
		if (me == MAIN) \
			unwatch(actor, address); \
	} while (0)
