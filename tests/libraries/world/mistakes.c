/* mistakes: calls with arguments that Open MPI and MPICH both refuse. Over sites, too, each is an error of
 * its communicator, and nobody dies. "mistakes list" says what came of each, also where an MPI dies. */
#include "world_test.h"

#include <setjmp.h>
#include <signal.h>

static sigjmp_buf before;

static void died(int signal)
{
    (void)signal;
    siglongjmp(before, 1);
}

static MPI_Comm world, grid, null_comm = MPI_COMM_NULL, made;
static MPI_Group group, null_group = MPI_GROUP_NULL, made_group;
static MPI_Request request;
static MPI_Message message;
static MPI_Status status;
static int number, flag, few[8], ranks[8] = {0}, wrong_rank[1] = {9999}, ranges[1][3] = {{0, 0, 0}};
static int wrong_range[1][3] = {{0, 9999, 1}}, minus[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
static int buffer[64], other[64];
static MPI_Datatype null_types[8];
static void *value;

/* One call a function, so that each can be named. */
#define CALLS(CALL)                                                                                   \
    CALL(MPI_Comm_size, world, NULL)                                                                  \
    CALL(MPI_Comm_rank, world, NULL)                                                                  \
    CALL(MPI_Comm_compare, world, world, NULL)                                                        \
    CALL(MPI_Comm_compare, world, null_comm, &number)                                                 \
    CALL(MPI_Comm_dup, world, NULL)                                                                   \
    CALL(MPI_Comm_idup, world, NULL, &request)                                                        \
    CALL(MPI_Comm_split, world, 0, 0, NULL)                                                           \
    CALL(MPI_Comm_split_type, world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, NULL)                    \
    CALL(MPI_Comm_create, world, group, NULL)                                                         \
    CALL(MPI_Comm_create, world, null_group, &made)                                                   \
    CALL(MPI_Comm_create_group, world, group, 0, NULL)                                                \
    CALL(MPI_Comm_create_group, world, group, -1, &made)                                              \
    CALL(MPI_Comm_group, world, NULL)                                                                 \
    CALL(MPI_Comm_free, &null_comm)                                                                   \
    CALL(MPI_Comm_disconnect, &null_comm)                                                             \
    CALL(MPI_Comm_test_inter, world, NULL)                                                            \
    CALL(MPI_Comm_remote_size, world, NULL)                                                           \
    CALL(MPI_Comm_remote_group, world, NULL)                                                          \
    CALL(MPI_Comm_get_attr, world, MPI_TAG_UB, NULL, &flag)                                           \
    CALL(MPI_Comm_get_attr, world, MPI_TAG_UB, &value, NULL)                                          \
    CALL(MPI_Intercomm_create, world, 9999, world, 0, 3, &made)                                       \
    CALL(MPI_Intercomm_create, world, 0, world, 0, 3, NULL)                                           \
    CALL(MPI_Intercomm_merge, world, 0, NULL)                                                         \
    CALL(MPI_Group_size, group, NULL)                                                                 \
    CALL(MPI_Group_rank, group, NULL)                                                                 \
    CALL(MPI_Group_size, null_group, &number)                                                         \
    CALL(MPI_Group_translate_ranks, group, 1, ranks, group, NULL)                                     \
    CALL(MPI_Group_translate_ranks, group, -1, ranks, group, few)                                     \
    CALL(MPI_Group_translate_ranks, group, 1, ranks, null_group, few)                                 \
    CALL(MPI_Group_translate_ranks, null_group, 1, ranks, group, few)                                 \
    CALL(MPI_Group_compare, group, group, NULL)                                                       \
    CALL(MPI_Group_compare, group, null_group, &number)                                               \
    CALL(MPI_Group_union, group, group, NULL)                                                         \
    CALL(MPI_Group_union, group, null_group, &made_group)                                             \
    CALL(MPI_Group_intersection, group, group, NULL)                                                  \
    CALL(MPI_Group_intersection, group, null_group, &made_group)                                      \
    CALL(MPI_Group_difference, group, group, NULL)                                                    \
    CALL(MPI_Group_difference, group, null_group, &made_group)                                        \
    CALL(MPI_Group_incl, group, 1, ranks, NULL)                                                       \
    CALL(MPI_Group_incl, group, -1, ranks, &made_group)                                               \
    CALL(MPI_Group_incl, group, 1, wrong_rank, &made_group)                                           \
    CALL(MPI_Group_excl, group, 1, ranks, NULL)                                                       \
    CALL(MPI_Group_excl, group, 1, wrong_rank, &made_group)                                           \
    CALL(MPI_Group_range_incl, group, 1, ranges, &made_group)                                         \
    CALL(MPI_Group_range_incl, group, 1, wrong_range, &made_group)                                    \
    CALL(MPI_Group_range_incl, group, 0, wrong_range, NULL)                                           \
    CALL(MPI_Group_range_excl, group, 1, ranges, &made_group)                                         \
    CALL(MPI_Group_range_excl, group, 1, wrong_range, &made_group)                                    \
    CALL(MPI_Group_range_excl, group, 0, wrong_range, NULL)                                           \
    CALL(MPI_Group_free, NULL)                                                                        \
    CALL(MPI_Group_free, &null_group)                                                                 \
    CALL(MPI_Send, buffer, -1, MPI_INT, 0, 0, world)                                                  \
    CALL(MPI_Send, NULL, 1, MPI_INT, 0, 0, world)                                                     \
    CALL(MPI_Send, buffer, 1, MPI_DATATYPE_NULL, 0, 0, world)                                         \
    CALL(MPI_Send, buffer, 1, MPI_INT, 9999, 0, world)                                                \
    CALL(MPI_Send, buffer, 1, MPI_INT, 0, -5, world)                                                  \
    CALL(MPI_Ssend, buffer, 1, MPI_INT, 9999, 0, world)                                               \
    CALL(MPI_Bsend, buffer, 1, MPI_INT, 9999, 0, world)                                               \
    CALL(MPI_Rsend, buffer, 1, MPI_INT, 9999, 0, world)                                               \
    CALL(MPI_Isend, buffer, 1, MPI_INT, 9999, 0, world, &request)                                     \
    CALL(MPI_Isend, buffer, 1, MPI_INT, size - 1, 0, world, NULL)                                     \
    CALL(MPI_Send_init, buffer, 1, MPI_INT, 9999, 0, world, &request)                                 \
    CALL(MPI_Send_init, buffer, 1, MPI_INT, size - 1, 0, world, NULL)                                 \
    CALL(MPI_Recv, buffer, -1, MPI_INT, 0, 0, world, &status)                                         \
    CALL(MPI_Recv, NULL, 1, MPI_INT, size - 1, 0, world, &status)                                     \
    CALL(MPI_Recv, buffer, 1, MPI_DATATYPE_NULL, 0, 0, world, &status)                                \
    CALL(MPI_Recv, buffer, 1, MPI_INT, 9999, 0, world, &status)                                       \
    CALL(MPI_Recv, buffer, 1, MPI_INT, 0, -5, world, &status)                                         \
    CALL(MPI_Irecv, buffer, 1, MPI_INT, 9999, 0, world, &request)                                     \
    CALL(MPI_Irecv, buffer, 1, MPI_INT, size - 1, 0, world, NULL)                                     \
    CALL(MPI_Recv_init, buffer, 1, MPI_INT, 9999, 0, world, &request)                                 \
    CALL(MPI_Recv_init, buffer, 1, MPI_INT, size - 1, 0, world, NULL)                                 \
    CALL(MPI_Sendrecv, buffer, 1, MPI_INT, 9999, 0, other, 1, MPI_INT, 0, 0, world, &status)          \
    CALL(MPI_Sendrecv, buffer, 1, MPI_INT, 0, 0, other, -1, MPI_INT, 0, 0, world, &status)            \
    CALL(MPI_Sendrecv_replace, buffer, 1, MPI_INT, 9999, 0, 0, 0, world, &status)                     \
    CALL(MPI_Probe, 9999, 0, world, &status)                                                          \
    CALL(MPI_Iprobe, 9999, 0, world, &flag, &status)                                                  \
    CALL(MPI_Mprobe, 9999, 0, world, &message, &status)                                               \
    CALL(MPI_Improbe, 9999, 0, world, &flag, &message, &status)                                       \
    CALL(MPI_Bcast, buffer, -1, MPI_INT, 0, world)                                                    \
    CALL(MPI_Bcast, buffer, 1, MPI_DATATYPE_NULL, 0, world)                                           \
    CALL(MPI_Bcast, buffer, 1, MPI_INT, 9999, world)                                                  \
    CALL(MPI_Bcast, buffer, 1, MPI_INT, -7, world)                                                    \
    CALL(MPI_Ibcast, buffer, 1, MPI_INT, 9999, world, &request)                                       \
    CALL(MPI_Gather, buffer, -1, MPI_INT, other, 1, MPI_INT, 0, world)                                \
    CALL(MPI_Gather, buffer, 1, MPI_DATATYPE_NULL, other, 1, MPI_INT, 0, world)                       \
    CALL(MPI_Gather, buffer, 1, MPI_INT, other, 1, MPI_INT, 9999, world)                              \
    CALL(MPI_Gatherv, buffer, 1, MPI_INT, other, ranks, ranks, MPI_INT, 9999, world)                  \
    CALL(MPI_Scatter, buffer, 1, MPI_INT, other, -1, MPI_INT, 0, world)                               \
    CALL(MPI_Scatter, buffer, 1, MPI_INT, other, 1, MPI_DATATYPE_NULL, 0, world)                      \
    CALL(MPI_Scatter, buffer, 1, MPI_INT, other, 1, MPI_INT, 9999, world)                             \
    CALL(MPI_Scatterv, buffer, ranks, ranks, MPI_INT, other, 1, MPI_INT, 9999, world)                 \
    CALL(MPI_Allgather, buffer, -1, MPI_INT, other, 1, MPI_INT, world)                                \
    CALL(MPI_Allgather, buffer, 1, MPI_INT, other, -1, MPI_INT, world)                                \
    CALL(MPI_Allgather, buffer, 1, MPI_DATATYPE_NULL, other, 1, MPI_INT, world)                       \
    CALL(MPI_Allgather, buffer, 1, MPI_INT, other, 1, MPI_DATATYPE_NULL, world)                       \
    CALL(MPI_Allgatherv, buffer, -1, MPI_INT, other, ranks, ranks, MPI_INT, world)                    \
    CALL(MPI_Allgatherv, buffer, 1, MPI_INT, other, ranks, ranks, MPI_DATATYPE_NULL, world)           \
    CALL(MPI_Alltoall, buffer, -1, MPI_INT, other, 1, MPI_INT, world)                                 \
    CALL(MPI_Alltoall, buffer, 1, MPI_DATATYPE_NULL, other, 1, MPI_INT, world)                        \
    CALL(MPI_Alltoall, buffer, 1, MPI_INT, other, 1, MPI_DATATYPE_NULL, world)                        \
    CALL(MPI_Alltoallv, buffer, minus, ranks, MPI_INT, other, ranks, ranks, MPI_INT, world)           \
    CALL(MPI_Alltoallv, buffer, ranks, ranks, MPI_DATATYPE_NULL, other, ranks, ranks, MPI_INT, world) \
    CALL(MPI_Reduce, buffer, other, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, world)                          \
    CALL(MPI_Reduce, buffer, other, 1, MPI_INT, MPI_OP_NULL, 0, world)                                \
    CALL(MPI_Reduce, buffer, other, 1, MPI_INT, MPI_SUM, 9999, world)                                 \
    CALL(MPI_Reduce, buffer, other, 1, MPI_DOUBLE, MPI_BAND, 0, world)                                \
    CALL(MPI_Allreduce, buffer, other, 1, MPI_DATATYPE_NULL, MPI_SUM, world)                          \
    CALL(MPI_Allreduce, buffer, other, 1, MPI_INT, MPI_OP_NULL, world)                                \
    CALL(MPI_Allreduce, buffer, other, 1, MPI_DOUBLE, MPI_BAND, world)                                \
    CALL(MPI_Reduce_scatter, buffer, other, minus, MPI_INT, MPI_SUM, world)                           \
    CALL(MPI_Reduce_scatter, buffer, other, ranks, MPI_INT, MPI_OP_NULL, world)                       \
    CALL(MPI_Reduce_scatter_block, buffer, other, 1, MPI_INT, MPI_OP_NULL, world)                     \
    CALL(MPI_Scan, buffer, other, 1, MPI_INT, MPI_OP_NULL, world)                                     \
    CALL(MPI_Exscan, buffer, other, 1, MPI_INT, MPI_OP_NULL, world)                                   \
    CALL(MPI_Neighbor_allgather, buffer, 1, MPI_INT, other, 1, MPI_INT, world)                        \
    CALL(MPI_Cart_create, world, -1, few, few, 0, &made)                                              \
    CALL(MPI_Cart_create, world, 1, NULL, few, 0, &made)                                              \
    CALL(MPI_Cart_create, world, 1, wrong_rank, few, 0, &made)                                        \
    CALL(MPI_Cart_create, world, 1, &size, few, 0, NULL)                                              \
    CALL(MPI_Cart_rank, world, few, &number)                                                          \
    CALL(MPI_Cart_coords, world, 0, 1, few)                                                           \
    CALL(MPI_Cart_shift, world, 0, 1, &number, few)                                                   \
    CALL(MPI_Cart_sub, world, few, &made)                                                             \
    CALL(MPI_Cartdim_get, world, &number)                                                             \
    CALL(MPI_Graph_create, world, 1, NULL, few, 0, &made)                                             \
    CALL(MPI_Graph_create, world, 9999, few, few, 0, &made)                                           \
    CALL(MPI_Graphdims_get, world, &number, few)                                                      \
    CALL(MPI_Graph_neighbors_count, world, 0, &number)                                                \
    CALL(MPI_Dist_graph_neighbors_count, world, &number, few, few + 1)                                \
    CALL(MPI_Topo_test, world, NULL)                                                                  \
    CALL(MPI_Cart_get, grid, 1, NULL, few, few)                                                       \
    CALL(MPI_Cart_get, grid, 1, few, NULL, few)                                                       \
    CALL(MPI_Cart_get, grid, 1, few, few, NULL)                                                       \
    CALL(MPI_Cart_rank, grid, NULL, &number)                                                          \
    CALL(MPI_Cart_rank, grid, few, NULL)                                                              \
    CALL(MPI_Cart_coords, grid, 0, 1, NULL)                                                           \
    CALL(MPI_Cart_coords, grid, 9999, 1, few)                                                         \
    CALL(MPI_Cart_shift, grid, 0, 1, NULL, few)                                                       \
    CALL(MPI_Cart_shift, grid, 0, 1, few, NULL)                                                       \
    CALL(MPI_Cartdim_get, grid, NULL)                                                                 \
    CALL(MPI_Cart_map, world, 1, &size, few, NULL)                                                    \
    CALL(MPI_Graph_map, world, 1, few, few, NULL)                                                     \
    CALL(MPI_Graph_neighbors_count, grid, 0, &number)                                                 \
    CALL(MPI_Topo_test, grid, NULL)

/* MPICH's layer for the standard interface looks into lists before it looks at them. */
#if defined(STANDARD_ABI)
#define CALLS_OF_REQUESTS(CALL)
#else
#define CALLS_OF_REQUESTS(CALL)                                   \
    CALL(MPI_Wait, NULL, &status)                                 \
    CALL(MPI_Test, NULL, &flag, &status)                          \
    CALL(MPI_Test, &request, NULL, &status)                       \
    CALL(MPI_Waitall, -1, &request, &status)                      \
    CALL(MPI_Waitall, 1, NULL, &status)                           \
    CALL(MPI_Waitany, 1, NULL, &number, &status)                  \
    CALL(MPI_Waitany, 1, &request, NULL, &status)                 \
    CALL(MPI_Testall, 1, NULL, &flag, &status)                    \
    CALL(MPI_Request_free, NULL)                                  \
    CALL(MPI_Request_get_status, MPI_REQUEST_NULL, NULL, &status) \
    CALL(MPI_Start, NULL)                                         \
    CALL(MPI_Cancel, NULL)
#endif

static const char *outcome_of(int result) { return result == -1 ? "dies" : result ? "error" : "success"; }

static int tells;

/* All ranks find the same, or it is said. */
static void tell(const char *call, int result)
{
    if (tells && rank == 0)
        printf("%s: %s\n", outcome_of(result), call), fflush(stdout);
    if (!tells && (result == -1 || result == MPI_SUCCESS)) {
        printf("rank %d: %s: %s\n", rank, call, outcome_of(result));
        fflush(stdout);
        wrong++;
    }
}

#define TRY_CALL(name, ...)                                 \
    request = MPI_REQUEST_NULL;                             \
    result = sigsetjmp(before, 1) ? -1 : name(__VA_ARGS__); \
    tell(#name "(" #__VA_ARGS__ ")", result);

int main(int argc, char **argv)
{
    volatile int result;
    begin(&argc, &argv);
    tells = argc > 1;
    world = MPI_COMM_WORLD;
    for (int i = 0; i < 8; i++)
        null_types[i] = MPI_DATATYPE_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_group(world, &group);
    MPI_Cart_create(world, 1, &size, few, 0, &grid);
    signal(SIGSEGV, died);
    CALLS(TRY_CALL)
    CALLS_OF_REQUESTS(TRY_CALL)
    signal(SIGSEGV, SIG_DFL);
    MPI_Comm_free(&grid);
    MPI_Group_free(&group);
    return end("mistakes");
}
