/* What the program can call and the world refuses. */
#ifndef CAUSEWAY_WORLD_IMPORTS_H
#define CAUSEWAY_WORLD_IMPORTS_H

/* Says on standard error, in one line, which refused calls the program and its libraries import; nothing
 * where there is none. It is not known whether they will be made over sites: the job goes on. */
void imports_tell(void);

#endif
