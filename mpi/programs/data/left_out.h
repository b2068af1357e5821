/* What a run leaves out, by name: elements, layouts ("hvector"), ways to send ("MPI_Ibsend"), calls of all
 * ranks ("MPI_Allgatherv"), "MPI_Get_elements", and "mixed" for words of several elements. For defects of an
 * MPI itself, which would hide others. */
#ifndef CAUSEWAY_DATA_LEFT_OUT_H
#define CAUSEWAY_DATA_LEFT_OUT_H

#include <string.h>

/* The names, separated by commas; data.c sets it. */
extern const char *left_out;

static inline int is_left_out(const char *name)
{
    size_t length = strlen(name);
    for (const char *at = left_out; (at = strstr(at, name)); at += length)
        if ((at == left_out || at[-1] == ',') && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

#endif
