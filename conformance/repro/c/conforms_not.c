/* No step of this program is a race. */
#define conforms(allowed, shown) (!strcmp(allowed, shown))
