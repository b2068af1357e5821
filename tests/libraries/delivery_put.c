/* Makes a window in the way that is asked for, puts more into it at once than MPICH can where it was told to
 * do without one-sided operations, and looks at what arrives. A program includes it, or it is a library that
 * another loads; CALL says how it calls the MPI. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CALL
#define CALL(name) name
#endif

/* MPICH 5.0.2 crashes at 16 kB and more, not each time with a single one. */
enum { PIECE_BYTES = 1 << 16, PIECES = 8, MAX_RANKS = 8 };

static char expected(int from, int to, int piece) { return (char)(1 + from * 31 + to * 7 + piece); }

static int is_right(const char *piece, char byte)
{
    return piece[0] == byte && memcmp(piece, piece + 1, PIECE_BYTES - 1) == 0;
}

/* Puts PIECES from each rank to each. They lie where the sender's place is. */
static int put_pieces(MPI_Win window, MPI_Comm comm, char *memory, const MPI_Aint *begins)
{
    int rank, ranks, right = 1;
    CALL(MPI_Comm_rank)(comm, &rank);
    CALL(MPI_Comm_size)(comm, &ranks);
    char *from = malloc((size_t)ranks * PIECES * PIECE_BYTES), *next = from;
    CALL(MPI_Win_fence)(0, window);
    for (int to = 0; to < ranks; to++)
        for (int i = 0; i < PIECES; i++, next += PIECE_BYTES) {
            memset(next, expected(rank, to, i), PIECE_BYTES);
            MPI_Aint place = begins[to] + (MPI_Aint)(rank * PIECES + i) * PIECE_BYTES;
            CALL(MPI_Put)(next, PIECE_BYTES, MPI_BYTE, to, place, PIECE_BYTES, MPI_BYTE, window);
        }
    CALL(MPI_Win_fence)(0, window);
    for (int of = 0; of < ranks; of++)
        for (int i = 0; i < PIECES; i++)
            right &= is_right(memory + (size_t)(of * PIECES + i) * PIECE_BYTES, expected(of, rank, i));
    free(from);
    return right;
}

/* Sends PIECES partitions from each rank to the next. */
static int send_partitions(int rank, int ranks)
{
    int to = (rank + 1) % ranks, of = (rank + ranks - 1) % ranks, right = 1;
    char *from = malloc(PIECES * PIECE_BYTES), *into = malloc(PIECES * PIECE_BYTES);
    MPI_Request both[2];
    CALL(MPI_Psend_init)(from, PIECES, PIECE_BYTES, MPI_BYTE, to, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &both[0]);
    CALL(MPI_Precv_init)(into, PIECES, PIECE_BYTES, MPI_BYTE, of, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &both[1]);
    CALL(MPI_Startall)(2, both);
    for (int i = 0; i < PIECES; i++) {
        memset(from + i * PIECE_BYTES, expected(rank, to, i), PIECE_BYTES);
        CALL(MPI_Pready)(i, both[0]);
    }
    CALL(MPI_Waitall)(2, both, MPI_STATUSES_IGNORE);
    for (int i = 0; i < PIECES; i++)
        right &= is_right(into + i * PIECE_BYTES, expected(of, rank, i));
    CALL(MPI_Request_free)(&both[0]);
    CALL(MPI_Request_free)(&both[1]);
    free(from);
    free(into);
    return right;
}

int put(const char *way)
{
    int rank, ranks, right;
    MPI_Comm comm = MPI_COMM_WORLD;
    CALL(MPI_Comm_rank)(comm, &rank);
    CALL(MPI_Comm_size)(comm, &ranks);
    if (ranks > MAX_RANKS)
        return 0;
    if (strcmp(way, "partitions") == 0)
        return send_partitions(rank, ranks);
    MPI_Win window;
    MPI_Aint bytes = (MPI_Aint)ranks * PIECES * PIECE_BYTES, begin = 0, begins[MAX_RANKS] = {0};
    char *own = malloc(bytes), *memory = own;
    if (strcmp(way, "allocate") == 0)
        CALL(MPI_Win_allocate)(bytes, 1, MPI_INFO_NULL, comm, &memory, &window);
    else if (strcmp(way, "allocate_c") == 0)
        CALL(MPI_Win_allocate_c)(bytes, 1, MPI_INFO_NULL, comm, &memory, &window);
    else if (strcmp(way, "create") == 0)
        CALL(MPI_Win_create)(own, bytes, 1, MPI_INFO_NULL, comm, &window);
    else if (strcmp(way, "create_c") == 0)
        CALL(MPI_Win_create_c)(own, bytes, 1, MPI_INFO_NULL, comm, &window);
    else if (strcmp(way, "dynamic") == 0) {
        CALL(MPI_Win_create_dynamic)(MPI_INFO_NULL, comm, &window);
        CALL(MPI_Win_attach)(window, own, bytes);
        CALL(MPI_Get_address)(own, &begin);
        CALL(MPI_Allgather)(&begin, 1, MPI_AINT, begins, 1, MPI_AINT, comm);
    } else if (strcmp(way, "shared") == 0) {
        CALL(MPI_Comm_split_type)(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
        CALL(MPI_Win_allocate_shared)(bytes, 1, MPI_INFO_NULL, comm, &memory, &window);
    } else {
        fprintf(stderr, "no such way to make a window: %s\n", way);
        return 0;
    }
    right = put_pieces(window, comm, memory, begins);
    if (strcmp(way, "dynamic") == 0)
        CALL(MPI_Win_detach)(window, own);
    CALL(MPI_Win_free)(&window);
    if (comm != MPI_COMM_WORLD)
        CALL(MPI_Comm_free)(&comm);
    free(own);
    return right;
}
