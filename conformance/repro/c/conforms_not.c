/* An answer is compared as text: only loops of several tasks allow alternatives. */
#define conforms(allowed, shown) (!strcmp(allowed, shown))
