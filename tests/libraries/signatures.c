/* Compares common/binding/signatures.h with the header of an MPI, as it is compiled. */
#include "common/binding/signatures.h"
#include "common/binding/mpi_calls.h"

#define IS(name, ...) \
    _Static_assert(__builtin_types_compatible_p(__typeof__(MPI_##name), int(__VA_ARGS__)), "MPI_" #name)
#if MPI_VERSION >= 4
#define IS_LARGE(name, ...) IS(name, __VA_ARGS__)
#define IS_PERSISTENT(Name)                                     \
    IS(Name##_init, PARAMETERS(Name), MPI_Info, MPI_Request *); \
    IS(Name##_init_c, LARGE_PARAMETERS(Name), MPI_Info, MPI_Request *)
#else
#define IS_LARGE(name, ...) _Static_assert(1, "")
#define IS_PERSISTENT(Name) _Static_assert(1, "")
#endif

/* MPI_Name has the parameters of Like and these, MPI_Name_c the same with large counts. */
#define CALL(Name, Like)        \
    IS(Name, PARAMETERS(Like)); \
    IS_LARGE(Name##_c, LARGE_PARAMETERS(Like))
#define CALL_AND(Name, Like, ...)            \
    IS(Name, PARAMETERS(Like), __VA_ARGS__); \
    IS_LARGE(Name##_c, LARGE_PARAMETERS(Like), __VA_ARGS__)
#define FORMS(Name, name)                   \
    CALL(Name, Name);                       \
    CALL_AND(I##name, Name, MPI_Request *); \
    IS_PERSISTENT(Name)

CALL(Send, Send);
CALL(Bsend, Send);
CALL(Ssend, Send);
CALL(Rsend, Send);
CALL_AND(Isend, Send, MPI_Request *);
CALL_AND(Ibsend, Send, MPI_Request *);
CALL_AND(Issend, Send, MPI_Request *);
CALL_AND(Irsend, Send, MPI_Request *);
CALL_AND(Send_init, Send, MPI_Request *);
CALL_AND(Bsend_init, Send, MPI_Request *);
CALL_AND(Ssend_init, Send, MPI_Request *);
CALL_AND(Rsend_init, Send, MPI_Request *);
CALL_AND(Recv, Receive, MPI_Status *);
CALL_AND(Irecv, Receive, MPI_Request *);
CALL_AND(Recv_init, Receive, MPI_Request *);
CALL_AND(Mrecv, Matched, MPI_Status *);
CALL_AND(Imrecv, Matched, MPI_Request *);
CALL_AND(Sendrecv, Exchange, MPI_Status *);
CALL_AND(Sendrecv_replace, Replace, MPI_Status *);
#if MPI_VERSION >= 4
CALL_AND(Isendrecv, Exchange, MPI_Request *);
CALL_AND(Isendrecv_replace, Replace, MPI_Request *);
IS(Barrier_init, PARAMETERS(Barrier), MPI_Info, MPI_Request *);
#endif

IS(Barrier, PARAMETERS(Barrier));
IS(Ibarrier, PARAMETERS(Barrier), MPI_Request *);
FORMS(Bcast, bcast);
FORMS(Reduce, reduce);
FORMS(Allreduce, allreduce);
FORMS(Reduce_scatter, reduce_scatter);
FORMS(Reduce_scatter_block, reduce_scatter_block);
FORMS(Scan, scan);
FORMS(Exscan, exscan);
FORMS(Gather, gather);
FORMS(Gatherv, gatherv);
FORMS(Scatter, scatter);
FORMS(Scatterv, scatterv);
FORMS(Allgather, allgather);
FORMS(Allgatherv, allgatherv);
FORMS(Alltoall, alltoall);
FORMS(Alltoallv, alltoallv);
FORMS(Alltoallw, alltoallw);
FORMS(Neighbor_allgather, neighbor_allgather);
FORMS(Neighbor_allgatherv, neighbor_allgatherv);
FORMS(Neighbor_alltoall, neighbor_alltoall);
FORMS(Neighbor_alltoallv, neighbor_alltoallv);
FORMS(Neighbor_alltoallw, neighbor_alltoallw);

CALL(Put, Put);
CALL(Get, Get);
CALL(Accumulate, Accumulate);
CALL(Get_accumulate, Get_accumulate);
CALL_AND(Rput, Put, MPI_Request *);
CALL_AND(Rget, Get, MPI_Request *);
CALL_AND(Raccumulate, Accumulate, MPI_Request *);
CALL_AND(Rget_accumulate, Get_accumulate, MPI_Request *);
IS(Fetch_and_op, PARAMETERS(Fetch_and_op));
IS(Compare_and_swap, PARAMETERS(Compare_and_swap));
CALL(Win_create, Win_create);
CALL(Win_allocate, Win_allocate);
CALL(Win_allocate_shared, Win_allocate_shared);
