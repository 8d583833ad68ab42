/* Store the number that a file shows, for ids that the kernel chooses. */
static long store_number(void *address, const char *path)
{
	long number = number_in(path);

	if (number < 0)
		return -1;
	memcpy(address, &number, sizeof(number));
	return sizeof(number);
}
