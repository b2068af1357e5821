/* large: messages and operations with counts above 2147483647, where the MPI has calls for them or not: each
 * rank needs 2 GiB. */
#include "world_test.h"

#include <limits.h>

/* A little more than an int counts. */
#define MANY ((int64_t)INT_MAX + 10)
/* As many bytes as elements of eight, which an int counts. */
#define EIGHTS (1 << 28)

static char *memory(int64_t bytes)
{
    char *all = malloc((size_t)bytes);
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return all;
}

/* Bytes far apart tell what has come. */
static const int64_t places[] = {0, 1, 1 << 30, (1 << 30) - 1, INT_MAX, (int64_t)INT_MAX + 9};
enum { PLACES = sizeof places / sizeof *places };

static void mark(char *all, int by)
{
    for (int i = 0; i < PLACES; i++)
        all[places[i]] = (char)(by * 16 + i);
}

static int is_marked(const char *all, int by)
{
    int is_right = 1;
    for (int i = 0; i < PLACES; i++)
        is_right = is_right && all[places[i]] == (char)(by * 16 + i);
    return is_right;
}

#if MPI_VERSION < 4
/* The world's library has the calls that this MPI lacks. */
#pragma weak MPI_Send_c
#pragma weak MPI_Bcast_c
int MPI_Send_c(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
int MPI_Bcast_c(void *, MPI_Count, MPI_Datatype, int, MPI_Comm);
#endif

/* Around all ranks, as elements of which an int counts enough. */
static void around(char *all)
{
    MPI_Datatype eight;
    MPI_Status status;
    MPI_Count bytes = 0;
    MPI_Type_contiguous(8, MPI_CHAR, &eight);
    MPI_Type_commit(&eight);
    for (int from = 0; from < size; from++) {
        int to = (from + 1) % size;
        memset(all, 0, (size_t)MANY + 8);
        if (rank == from) {
            mark(all, from + 1);
            MPI_Send_c(all, MANY, MPI_CHAR, to, 1, MPI_COMM_WORLD);
        } else if (rank == to) {
            MPI_Recv(all, EIGHTS + 2, eight, from, 1, MPI_COMM_WORLD, &status);
            MPI_Get_elements_x(&status, MPI_CHAR, &bytes);
            CHECK(bytes == MANY && is_marked(all, from + 1));
        }
    }
    MPI_Type_free(&eight);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    char *all = memory(MANY + 8);
    around(all);
    for (int root = 0; root < size; root++) {
        memset(all, 0, (size_t)MANY);
        if (rank == root)
            mark(all, root + 3);
        MPI_Bcast_c(all, MANY, MPI_CHAR, root, MPI_COMM_WORLD);
        CHECK(is_marked(all, root + 3));
    }
    free(all);
    return end("large");
}
