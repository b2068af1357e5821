/* The calls of the MPI below, by pointers that are found at run time. This library is preloaded into programs
 * that load their MPI later, and into launchers that have none, so it must need no symbol of any MPI. */
#ifndef CAUSEWAY_MPI_CALLS_H
#define CAUSEWAY_MPI_CALLS_H

#ifdef CAUSEWAY_STANDARD_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

/* The standard binary interface leaves out what MPI 4 has replaced, and Open MPI 4 does not have what
 * replaces it. */
#ifdef CAUSEWAY_STANDARD_ABI
#define CALL_INFO(CALL) CALL(Info_get_string)
#else
#define CALL_INFO(CALL) CALL(Info_get)
#endif

/* Every MPI since 3.0 has these. clang-format would take the list for one expression. */
/* clang-format off */
#define MPI_CALLS(CALL) \
    CALL_INFO(CALL) \
    CALL(Allgather) CALL(Allgatherv) CALL(Allreduce) CALL(Alltoall) CALL(Alltoallv) CALL(Alltoallw) \
    CALL(Barrier) CALL(Bcast) CALL(Cancel) CALL(Comm_call_errhandler) CALL(Comm_create) \
    CALL(Comm_create_errhandler) CALL(Comm_create_group) CALL(Comm_create_keyval) CALL(Comm_delete_attr) \
    CALL(Comm_disconnect) CALL(Comm_free) CALL(Comm_free_keyval) CALL(Comm_get_attr) \
    CALL(Comm_get_errhandler) CALL(Comm_get_info) CALL(Comm_group) CALL(Comm_rank) CALL(Comm_set_attr) \
    CALL(Comm_set_errhandler) CALL(Comm_size) CALL(Comm_split) CALL(Comm_split_type) CALL(Comm_test_inter) \
    CALL(Errhandler_free) CALL(Exscan) CALL(Finalize) CALL(Gather) CALL(Gatherv) CALL(Get_library_version) \
    CALL(Group_free) CALL(Group_incl) CALL(Group_translate_ranks) CALL(Iallgather) CALL(Iallgatherv) \
    CALL(Iallreduce) CALL(Ialltoall) CALL(Ialltoallv) CALL(Ialltoallw) CALL(Ibarrier) CALL(Ibcast) \
    CALL(Iexscan) CALL(Igather) CALL(Igatherv) CALL(Info_set) CALL(Init) CALL(Init_thread) CALL(Iprobe) \
    CALL(Irecv) CALL(Ireduce) CALL(Ireduce_scatter) CALL(Ireduce_scatter_block) CALL(Iscan) CALL(Iscatter) \
    CALL(Iscatterv) CALL(Isend) CALL(Op_commutative) CALL(Op_free) CALL(Pack) CALL(Recv_init) CALL(Reduce) \
    CALL(Reduce_local) CALL(Reduce_scatter) CALL(Reduce_scatter_block) CALL(Request_free) CALL(Scan) \
    CALL(Scatter) CALL(Scatterv) CALL(Start) CALL(Startall) CALL(Test) CALL(Type_free) \
    CALL(Type_get_envelope) CALL(Type_get_extent) CALL(Type_get_true_extent) CALL(Type_size_x) CALL(Unpack) \
    CALL(Wait) CALL(Win_allocate) CALL(Win_create) CALL(Win_create_dynamic)
/* clang-format on */

struct mpi_calls {
#define CALL(name) __typeof__(PMPI_##name) *name;
    MPI_CALLS(CALL)
#undef CALL
};

/* Handles that Open MPI knows by the addresses of objects, which are symbols too. */
struct mpi_handles {
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Datatype byte, datatype_null;
    MPI_Request request_null;
    MPI_Errhandler errors_return, errors_are_fatal;
    MPI_Op op_null, bitwise_or;
    MPI_Info info_null;
};

extern struct mpi_calls real;
extern struct mpi_handles handle;

/* Finds all calls, once. False when some are missing: those of a library with another interface, or all,
 * where there is no MPI. */
int mpi_calls_load(void);

/* Finds PMPI_name, or else PMPIX_name, of a call that not every MPI has; NULL where neither is there. */
void *mpi_calls_find(const char *name);

/* Whether the MPI of this process has the binary interface that this library was built for. One that has
 * another is called with the program's own arguments, and with nothing else. */
int mpi_calls_fit(void);

/* Makes `call` only if nothing has failed, and keeps the first error. */
#define TRY(status, call) ((status) == MPI_SUCCESS ? ((status) = (call)) : (status))

#endif
