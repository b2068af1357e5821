/* traffic DIRECTORY: every rank sends to every other, both ways at once, 1 B to 1 MB, order and contents
 * checked, until there is a file DIRECTORY/enough. Made for networks that fail meanwhile: DIRECTORY/rounds
 * says how many rounds are done, and a round ends only when every rank has all of it. Exit status 1 if any
 * byte is wrong. */
#include "pattern.h"
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

/* The sizes lie on both sides of what libraries, TCP and the tunnel treat differently: a segment, eager
 * limits, a frame. */
static const int SIZES[] = {1, 7, 64, 1000, 1461, 4096, 12289, 65536, 65551, 262147, 1 << 20};
enum { KINDS = sizeof SIZES / sizeof *SIZES, MOST_BYTES = 1 << 20 };

/* So many messages a pair of ranks has on their way at once in each direction, all with one tag. Where two
 * are exchanged it shows. */
enum { FLIGHT = 4 };

struct traffic {
    int rank, ranks, wrong;
    unsigned char *out, *in; /* FLIGHT messages for, and from, each rank */
    MPI_Request *requests;   /* those received, then those sent */
    MPI_Status *done;
    unsigned long long messages, bytes; /* received and checked */
};

/* The seed is the same at the sender and at the receiver, and repeats in no order soon. */
static uint64_t seed_of(int from, int to, unsigned long long round, int number)
{
    return pattern_seed((uint64_t)from, (uint64_t)to, (uint64_t)number, round);
}

static int size_of(int from, int to, unsigned long long round, int number)
{
    return SIZES[(seed_of(from, to, round, number) >> 32) % KINDS];
}

static unsigned char *place(unsigned char *all, int peer, int number)
{
    return all + ((size_t)peer * FLIGHT + (size_t)number) * MOST_BYTES;
}

static void start(struct traffic *t, unsigned long long round)
{
    MPI_Request *next = t->requests;
    for (int peer = 0; peer < t->ranks; peer++)
        for (int number = 0; number < FLIGHT && peer != t->rank; number++) {
            /* The receive has room for any message: one that comes too early is reported by its contents, not
             * by MPI's abort. */
            memset(place(t->in, peer, number), 0, (size_t)size_of(peer, t->rank, round, number));
            MPI_Irecv(place(t->in, peer, number), MOST_BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, next++);
        }
    for (int peer = 0; peer < t->ranks; peer++)
        for (int number = 0; number < FLIGHT && peer != t->rank; number++) {
            int size = size_of(t->rank, peer, round, number);
            pattern_fill(place(t->out, peer, number), (size_t)size, seed_of(t->rank, peer, round, number));
            MPI_Isend(place(t->out, peer, number), size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, next++);
        }
}

static void finish(struct traffic *t, unsigned long long round)
{
    MPI_Waitall(2 * FLIGHT * (t->ranks - 1), t->requests, t->done);
    const MPI_Status *status = t->done;
    for (int peer = 0; peer < t->ranks; peer++)
        for (int number = 0; number < FLIGHT && peer != t->rank; number++) {
            int expected = size_of(peer, t->rank, round, number), size = 0;
            MPI_Get_count(status++, MPI_BYTE, &size);
            if (size != expected) {
                fprintf(stderr,
                        "traffic: rank %d: round %llu, message %d from rank %d has %d bytes, expected %d\n",
                        t->rank, round, number, peer, size, expected);
                t->wrong = 1;
            } else {
                t->wrong |= pattern_check(place(t->in, peer, number), (size_t)size,
                                          seed_of(peer, t->rank, round, number), "traffic", t->rank, peer);
            }
            t->messages++;
            t->bytes += (unsigned long long)size;
        }
}

/* The file is renamed into place: who reads it finds a whole number. */
static void tell(const char *directory, unsigned long long rounds)
{
    char name[4096], part[4096];
    snprintf(name, sizeof name, "%s/rounds", directory);
    snprintf(part, sizeof part, "%s/rounds.part", directory);
    FILE *file = fopen(part, "w");
    if (!file || fprintf(file, "%llu\n", rounds) < 0 || fclose(file) != 0 || rename(part, name) != 0) {
        perror(name);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static int is_enough(const char *directory)
{
    char name[4096];
    snprintf(name, sizeof name, "%s/enough", directory);
    return access(name, F_OK) == 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct traffic t = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &t.ranks);
    size_t slots = (size_t)t.ranks * FLIGHT;
    t.out = malloc(slots * MOST_BYTES);
    t.in = malloc(slots * MOST_BYTES);
    t.requests = malloc(2 * slots * sizeof *t.requests);
    t.done = malloc(2 * slots * sizeof *t.done);
    if (argc != 2 || !t.out || !t.in || !t.requests || !t.done) {
        fprintf(stderr, "traffic: needs a directory and memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    unsigned long long rounds = 0;
    double longest = 0;
    /* Rank 0 alone looks for the file, because all must end after the same round. */
    for (int over = 0; !over; rounds++) {
        double before = MPI_Wtime();
        start(&t, rounds);
        finish(&t, rounds);
        int mine = t.wrong || (t.rank == 0 && is_enough(argv[1]));
        MPI_Allreduce(&mine, &over, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        double took = MPI_Wtime() - before;
        longest = took > longest ? took : longest;
        if (t.rank == 0)
            tell(argv[1], rounds + 1);
    }

    int any = 0;
    unsigned long long mine[2] = {t.messages, t.bytes}, sum[2] = {0, 0};
    MPI_Allreduce(&t.wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Reduce(mine, sum, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (t.rank == 0)
        printf("traffic: %d ranks, %llu rounds, %llu messages of 1 to %d bytes, %llu bytes in all, "
               "longest round %.1f s, %s\n",
               t.ranks, rounds, sum[0], MOST_BYTES, sum[1], longest, any ? "WRONG" : "all right");
    free(t.out);
    free(t.in);
    free(t.requests);
    free(t.done);
    MPI_Finalize();
    return any;
}
