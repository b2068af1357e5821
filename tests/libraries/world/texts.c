/* texts: names and messages of the lengths that each MPI has for them (MPI_MAX_PROCESSOR_NAME and the like)
 * go between sites of unlike MPIs, by every operation that moves data, as C and as Fortran write them. Other
 * data of unlike sizes is an error. */
#include "world_test.h"

enum { MOST = 16, LONGEST = 8192 };

/* Texts are those of C, ended by a zero, or those of Fortran, one shorter and ended with blanks. */
static int is_fortran;

static void write_text(char *at, int length, int of, int to)
{
    char text[64];
    memset(at, is_fortran ? ' ' : 0, (size_t)length);
    int written = snprintf(text, sizeof text, "rank-%d.to-%d.example", of, to);
    memcpy(at, text, (size_t)written);
}

static int is_text(const char *at, int length, int of, int to)
{
    char expected[LONGEST];
    write_text(expected, length, of, to);
    return is_fortran ? !memcmp(at, expected, (size_t)length) : !strcmp(at, expected);
}

static char out[MOST * LONGEST], in[MOST * LONGEST];

static void wipe(void) { memset(in, 'x', sizeof in); }

static void write_all(int length)
{
    for (int i = 0; i < size; i++)
        write_text(out + i * length, length, rank, i);
}

static void check_all(int length, int to)
{
    for (int i = 0; i < size; i++)
        CHECK(is_text(in + i * length, length, i, to));
}

static void rooted(int length, int root)
{
    int counts[MOST], starts[MOST];
    MPI_Request request;
    for (int i = 0; i < size; i++)
        counts[i] = length, starts[i] = i * length;
    write_text(out, length, rank, 0);
    wipe();
    MPI_Gather(out, length, MPI_CHAR, in, length, MPI_CHAR, root, MPI_COMM_WORLD);
    if (rank == root)
        check_all(length, 0);
    wipe();
    MPI_Igather(out, length, MPI_CHAR, in, length, MPI_CHAR, root, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == root)
        check_all(length, 0);
    wipe();
    MPI_Gatherv(out, length, MPI_CHAR, in, counts, starts, MPI_CHAR, root, MPI_COMM_WORLD);
    if (rank == root)
        check_all(length, 0);
    write_all(length);
    wipe();
    MPI_Scatter(out, length, MPI_CHAR, in, length, MPI_CHAR, root, MPI_COMM_WORLD);
    CHECK(is_text(in, length, root, rank));
    wipe();
    MPI_Scatterv(out, counts, starts, MPI_CHAR, in, length, MPI_CHAR, root, MPI_COMM_WORLD);
    CHECK(is_text(in, length, root, rank));
    wipe();
    if (rank == root)
        write_text(in, length, root, 0);
    MPI_Bcast(in, length, MPI_CHAR, root, MPI_COMM_WORLD);
    CHECK(is_text(in, length, root, 0));
}

static void of_all(int length)
{
    int counts[MOST], starts[MOST];
    MPI_Request request;
    for (int i = 0; i < size; i++)
        counts[i] = length, starts[i] = i * length;
    write_text(out, length, rank, 0);
    wipe();
    MPI_Allgather(out, length, MPI_CHAR, in, length, MPI_CHAR, MPI_COMM_WORLD);
    check_all(length, 0);
    wipe();
    write_text(in + rank * length, length, rank, 0);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_CHAR, in, length, MPI_CHAR, MPI_COMM_WORLD);
    check_all(length, 0);
    wipe();
    MPI_Iallgather(out, length, MPI_CHAR, in, length, MPI_CHAR, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_all(length, 0);
    wipe();
    MPI_Allgatherv(out, length, MPI_CHAR, in, counts, starts, MPI_CHAR, MPI_COMM_WORLD);
    check_all(length, 0);
    write_all(length);
    wipe();
    MPI_Alltoall(out, length, MPI_CHAR, in, length, MPI_CHAR, MPI_COMM_WORLD);
    check_all(length, rank);
    wipe();
    MPI_Alltoallv(out, counts, starts, MPI_CHAR, in, counts, starts, MPI_CHAR, MPI_COMM_WORLD);
    check_all(length, rank);
}

/* Messages: what is longer than the receiver's length is the unused end of a text. The rest of a receiver's
 * longer text stays as it is, as in any MPI. */
static void messages(int length)
{
    MPI_Status status;
    char room[LONGEST];
    write_text(out, length, rank, 0);
    memset(room, ' ', sizeof room);
    MPI_Sendrecv(out, length, MPI_CHAR, (rank + 1) % size, 3, room, length, MPI_CHAR,
                 (rank + size - 1) % size, 3, MPI_COMM_WORLD, &status);
    CHECK(is_text(room, length, (rank + size - 1) % size, 0));
}

static void lengths_of(int kind, int *length)
{
    static const int lengths[] = {
        MPI_MAX_PROCESSOR_NAME, MPI_MAX_ERROR_STRING, MPI_MAX_LIBRARY_VERSION_STRING,
        MPI_MAX_OBJECT_NAME,    MPI_MAX_INFO_VAL,     MPI_MAX_PORT_NAME};
    *length = lengths[kind] - is_fortran;
}

/* 100 and 96 numbers are no text. */
static void other_sizes(void)
{
    MPI_Comm comm, site;
    int mine[100] = {0}, *all = malloc(100 * MOST * sizeof *all), is_first, first = rank, here;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &site);
    MPI_Comm_size(site, &here);
    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, site);
    is_first = first == 0;
    for (int more = -1; more <= 1; more += 2) {
        int count = is_first ? 98 : 98 + 2 * more;
        int status = MPI_Gather(mine, count, MPI_INT, all, count, MPI_INT, 0, comm);
        CHECK((status == MPI_SUCCESS) == (rank != 0 || here == size));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&site);
    MPI_Comm_free(&comm);
    free(all);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    for (is_fortran = 0; is_fortran < 2; is_fortran++)
        for (int kind = 0; kind < 6; kind++) {
            int length;
            lengths_of(kind, &length);
            for (int root = 0; root < size; root++)
                rooted(length, root);
            of_all(length);
            messages(length);
        }
    other_sizes();
    return end("texts");
}
