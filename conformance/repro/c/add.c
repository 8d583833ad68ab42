/* Add to a word atomically, many times. */
static long add(int *word, int amount, long times)
{
	for (long i = 0; i < times; i++)
		__atomic_add_fetch(word, amount, __ATOMIC_SEQ_CST);
	return 0;
}
