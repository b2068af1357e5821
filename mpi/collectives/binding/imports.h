/* Looks at what the objects of this process import: whether any could make a window, or load what does. */
#ifndef CAUSEWAY_IMPORTS_H
#define CAUSEWAY_IMPORTS_H

int imports_may_make_windows(void);

#endif
