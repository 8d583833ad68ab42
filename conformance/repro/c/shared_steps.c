#define STEP(number, actor, call) \
	do { \
		if (begin(me, from, number, actor, #call)) \
			answer(me, actor, number, (long)(call)); \
	} while (0)
#define EXPECT_ONE_OF(...) \
	do { \
		if (me == MAIN) \
			settle((const struct answer[]){ __VA_ARGS__ }, \
			       LENGTH(((const struct answer[]){ __VA_ARGS__ }))); \
	} while (0)
#define EXPECT(...) EXPECT_ONE_OF({ __VA_ARGS__ })
