/* Repeat a call until it answers as expected, or for ten seconds. */
#define EVENTUALLY(number, call, ...) \
	do \
		STEP(number, call); \
	while (retry((const struct answer[]){ __VA_ARGS__ }, \
		     LENGTH(((const struct answer[]){ __VA_ARGS__ }))))
