/* Calls that the program may make but the world refuses. */
#ifndef CAUSEWAY_WORLD_IMPORTS_H
#define CAUSEWAY_WORLD_IMPORTS_H

/* Reports on standard error, in one line, which refused calls the program and its libraries import; prints
 * nothing if there are none. The job continues, because it is not known whether the calls will be made over
 * sites. */
void imports_tell(void);

#endif
