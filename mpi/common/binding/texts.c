#include "common/binding/texts.h"

#include "common/binding/mpi_calls.h"

#include <string.h>

/* Pairs of different values that Open MPI, MPICH and its relatives, and the standard binary interface give to
 * the same constant (mpi.h of each). */
static const struct {
    int64_t one, other;
} pairs[] = {
    {128, 256},                         /* MPI_MAX_PROCESSOR_NAME */
    {256, 512},                         /* MPI_MAX_ERROR_STRING */
    {64, 128},                          /* MPI_MAX_OBJECT_NAME */
    {256, 8192},                        /* MPI_MAX_LIBRARY_VERSION_STRING */
    {36, 255},   {36, 256}, {255, 256}, /* MPI_MAX_INFO_KEY */
    {256, 1024},                        /* MPI_MAX_INFO_VAL, MPI_MAX_PORT_NAME, MPI_MAX_STRINGTAG_LEN */
    {512, 1024},                        /* MPI_MAX_PSET_NAME_LEN */
};

enum { PAIRS = sizeof pairs / sizeof *pairs };

int texts_are_one(int64_t a, int64_t b)
{
    for (int i = 0; i < PAIRS; i++)
        for (int more = -1; more <= 1; more++) {
            int64_t one = pairs[i].one + more, other = pairs[i].other + more;
            if ((a == one && b == other) || (a == other && b == one))
                return 1;
        }
    return 0;
}

int texts_have_length(int64_t bytes)
{
    for (int i = 0; bytes <= TEXTS_LONGEST + 1 && i < PAIRS; i++)
        if ((bytes >= pairs[i].one - 1 && bytes <= pairs[i].one + 1) ||
            (bytes >= pairs[i].other - 1 && bytes <= pairs[i].other + 1))
            return 1;
    return 0;
}

int texts_may_differ(int64_t bytes)
{
    static int is_known, is_world;
    if (!is_known) {
        is_world = mpi_calls_are_worlds();
        is_known = 1;
    }
    return is_world && texts_have_length(bytes);
}

/* The number of characters before the end of a text; -1 if the buffer contains other data. */
static int64_t length_of(const char *buffer, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        unsigned char c = (unsigned char)buffer[i];
        if (c == 0)
            return i;
        if (c < ' ' && !strchr("\t\n\r", c))
            return -1;
    }
    return count;
}

int texts_settle(char *buffer, int64_t room, int64_t sent)
{
    int64_t came = sent < room ? sent : room, length = length_of(buffer, came);
    if (length < 0)
        return 0;
    if (length < came)
        return 1;
    int is_blank = came > 0 && buffer[came - 1] == ' ';
    if (is_blank && sent < room)
        memset(buffer + sent, ' ', (size_t)(room - sent));
    return is_blank || sent < room;
}
