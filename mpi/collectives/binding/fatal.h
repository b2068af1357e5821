/* Ends the program with a message, where an MPI error would not be enough: other ranks are in the same call
 * and would wait. */
#ifndef CAUSEWAY_FATAL_H
#define CAUSEWAY_FATAL_H

/* Ends the job as an unhandled MPI error does, whatever error handler the program has set. */
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns `memory`, or ends the job if it is NULL. For steps that all ranks take together. */
void *must_have(void *memory);

#endif
