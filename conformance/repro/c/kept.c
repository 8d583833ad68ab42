/* The answer of a call that fills a descriptor. */
static long kept(int *descriptor, long value)
{
	if (value < 0)
		return value;
	*descriptor = (int)value;
	return 0;
}
