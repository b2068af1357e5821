/* Ends the program with a message, where an MPI error would not do: other ranks are in the same call and
 * would wait. */
#ifndef CAUSEWAY_FATAL_H
#define CAUSEWAY_FATAL_H

/* Ends the job, as an error does that nobody handles, whatever the program's error handler is. */
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the memory, or ends the job where there is none. It is for what all ranks do together. */
void *must_have(void *memory);

#endif
