/* many: 1020 communicators over sites at once, twice, with operations on them; and more, until the MPI of
 * some site has none: then every rank gets the error, and what is there goes on. */
#include "world_test.h"

enum { AT_ONCE = 1020, MOST = 3000 };

static MPI_Comm comms[MOST];

static void use(MPI_Comm comm)
{
    int sum = 0, from = -1, left = (rank + size - 1) % size;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 2, &from, 1, MPI_INT, left, 2, comm,
                 MPI_STATUS_IGNORE);
    CHECK(sum == size * (size - 1) / 2 && from == left);
}

/* Returns how many there were. */
static int make(int most, int uses_each)
{
    int count = 0;
    while (count < most && MPI_Comm_dup(MPI_COMM_WORLD, &comms[count]) == MPI_SUCCESS) {
        if (uses_each)
            use(comms[count]);
        count++;
    }
    return count;
}

static void free_all(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (int round = 0; round < 2; round++) {
        CHECK(make(AT_ONCE, round) == AT_ONCE);
        use(comms[0]), use(comms[AT_ONCE - 1]);
        free_all(AT_ONCE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int count = make(MOST, 0), least, most;
    MPI_Allreduce(&count, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&count, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(least == most && least >= AT_ONCE);
    use(comms[count - 1]);
    free_all(count);
    CHECK(make(10, 1) == 10);
    free_all(10);
    return end("many");
}
