#define STEP(number, call) (begin(number, #call), answer((long)(call)))
#define EXPECT_ONE_OF(...) \
	compare((const struct answer[]){ __VA_ARGS__ }, \
		LENGTH(((const struct answer[]){ __VA_ARGS__ })))
#define EXPECT(...) EXPECT_ONE_OF({ __VA_ARGS__ })
