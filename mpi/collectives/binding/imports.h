/* Examines the imports of the objects in this process: whether any object could make a window, or load code
 * that does. */
#ifndef CAUSEWAY_IMPORTS_H
#define CAUSEWAY_IMPORTS_H

int imports_may_make_windows(void);

#endif
