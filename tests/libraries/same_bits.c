/* Sums of doubles of very unlike sizes, as bits: what same_bits.sh compares over placements.
 *
 * same_bits: prints one line for each operation, count and communicator, with a checksum over what all ranks
 * got. */
#include "native.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

/* The counts go from a few elements to several segments. */
static const int counts[] = {1, 3, 1000, 20011, 100003};
#define MAX_COUNT 100003

static int rank, size;

/* The values are large and small ones of both signs: any other order of additions rounds differently. */
static void fill(double *values, int count)
{
    uint64_t state = 88172645463325252ULL + 977 * (uint64_t)rank;
    for (int i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        double value = (double)(state >> 12) / 1e9;
        for (uint64_t times = state % 23; times > 0; times--)
            value *= state & 64 ? 7.3 : 0.19;
        values[i] = state & 1 ? value : -value;
    }
}

/* Prints a checksum of this rank's bytes and the others', in the order of ranks. The MPI gathers them,
 * whatever the placement. */
static void print(const char *what, int communicator, int count, const double *values, int held)
{
    uint64_t sum = 14695981039346656037ULL, sums[64];
    for (int i = 0; i < held; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sum = (sum ^ bits) * 1099511628211ULL;
    }
    NATIVE(Gather)(&sum, 1, MPI_UINT64_T, sums, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank != 0)
        return;
    printf("%s %d %d", what, communicator, count);
    for (int i = 0; i < size; i++)
        printf(" %016" PRIx64, sums[i]);
    printf("\n");
}

static void compare(MPI_Comm comm, int communicator, int count)
{
    static double from[64 * MAX_COUNT], into[64 * MAX_COUNT];
    int here, all, parts[64];
    MPI_Comm_rank(comm, &here);
    MPI_Comm_size(comm, &all);
    for (int i = 0; i < all; i++)
        parts[i] = count / all + (i < count % all) + i;
    fill(from, all * count + all * all);
    memset(into, 0, sizeof into[0] * (size_t)(all * count));
    MPI_Reduce(from, into, count, MPI_DOUBLE, MPI_SUM, all - 1, comm);
    print("reduce", communicator, count, into, here == all - 1 ? count : 0);
    MPI_Allreduce(from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    print("allreduce", communicator, count, into, count);
    MPI_Reduce_scatter(from, into, parts, MPI_DOUBLE, MPI_SUM, comm);
    print("reduce_scatter", communicator, count, into, parts[here]);
    MPI_Reduce_scatter_block(from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    print("reduce_scatter_block", communicator, count, into, count);
    MPI_Scan(from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    print("scan", communicator, count, into, count);
    MPI_Exscan(from, into, count, MPI_DOUBLE, MPI_SUM, comm);
    print("exscan", communicator, count, into, here > 0 ? count : 0);
    memcpy(into, from, sizeof into[0] * (size_t)count);
    MPI_Allreduce(MPI_IN_PLACE, into, count, MPI_DOUBLE, MPI_SUM, comm);
    print("allreduce in place", communicator, count, into, count);
}

int main(int argc, char **argv)
{
    MPI_Comm reversed, halves;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!dlsym(RTLD_DEFAULT, CROSSINGS) || size > 64) {
        fprintf(stderr, "same_bits: %s\n", size > 64 ? "too many ranks" : "the library is not preloaded");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        compare(MPI_COMM_WORLD, 0, counts[i]);
        compare(reversed, 1, counts[i]);
        compare(halves, 2, counts[i]);
    }
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&halves);
    MPI_Finalize();
    return 0;
}
