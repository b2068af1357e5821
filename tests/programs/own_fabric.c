/* own_fabric: sends 64 MB both ways between the two ranks of each site, which are on two nodes, and says how
 * many bytes went over this node's interfaces meanwhile, loopback among them. One exchange between the sites
 * shows that they are one world. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, TIMES = 64 };

static char out[BYTES], in[BYTES];

/* Sent and received, of all interfaces of this node. */
static unsigned long long carried(void)
{
    unsigned long long all = 0, received, sent;
    char line[512];
    FILE *file = fopen("/proc/net/dev", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &received, &sent) == 2)
            all += received + sent;
    }
    if (file)
        fclose(file);
    return all;
}

int main(int count, char **words)
{
    int rank, ranks, here, name = 0, wrong = 0, all, length;
    char node[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm site;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(node, &length);
    const char *own = getenv("CAUSEWAY_SITE");
    for (const char *c = own ? own : ""; *c; c++)
        name = (name * 31 + *c) & 0xffff;
    MPI_Comm_split(MPI_COMM_WORLD, name, rank, &site);
    MPI_Comm_rank(site, &here);
    unsigned long long before = 0;
    for (int i = 0; i <= TIMES; i++) {
        memset(out, rank + i, sizeof out);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, 1 - here, 0, in, BYTES, MPI_BYTE, 1 - here, 0, site,
                     MPI_STATUS_IGNORE);
        wrong |= in[0] != (char)(rank + 1 - 2 * here + i);
        wrong |= in[BYTES - 1] != in[0];
        /* The first one makes the connections. */
        if (i == 0)
            before = carried();
    }
    unsigned long long bytes = carried() - before;
    printf("rank %d on %s: %d MB within the site, %s over sockets\n", rank, node, 2 * TIMES,
           bytes < BYTES ? "nothing" : "data");
    fflush(stdout);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        printf("own_fabric: %d ranks, %s\n", ranks, all ? "wrong" : "all right");
    MPI_Comm_free(&site);
    MPI_Finalize();
    return all;
}
