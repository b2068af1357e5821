/* What ends the program with a message. It is for where an MPI error would not do: other ranks are in the
 * same call, and would wait. */
#ifndef CAUSEWAY_FATAL_H
#define CAUSEWAY_FATAL_H

/* Ends as by any error that nobody handles, whatever the program's error handler is. */
_Noreturn void fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory, or the end: for what all ranks do together. */
void *must_have(void *memory);

#endif
