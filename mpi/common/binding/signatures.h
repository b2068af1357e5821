/* The parameters of MPI's functions, each written once. PARAMETERS(Bcast) are those of MPI_Bcast, as in a
 * definition, LARGE_PARAMETERS(Bcast) those of MPI_Bcast_c, and ARGUMENTS(Bcast) their names, for either.
 * Non-blocking forms add a request, and persistent collectives also an info before it.
 *
 * `Count` is the type of a number of elements, `Place` that of a displacement whose type differs between the
 * two. The same parameter has the same name everywhere: what a rank sends is `from` with count, type, counts,
 * displs and types, or `buffer` if it goes to one rank; what it receives is `into` with into_count and so on.
 * tests/libraries/signatures.sh compares all of them with the headers of MPIs. */
#ifndef CAUSEWAY_SIGNATURES_H
#define CAUSEWAY_SIGNATURES_H

#define PARAMETERS(Name) SIGNATURE_##Name(int, int)
#define LARGE_PARAMETERS(Name) SIGNATURE_##Name(MPI_Count, MPI_Aint)
#define ARGUMENTS(Name) ARGUMENTS_##Name

/* Messages. For MPI_Send and its variants. */
#define SIGNATURE_Send(Count, Place) \
    const void *buffer, Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm
#define ARGUMENTS_Send buffer, count, type, to, tag, comm

/* MPI_Recv adds a status, MPI_Irecv and MPI_Recv_init a request. */
#define SIGNATURE_Receive(Count, Place) \
    void *buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm
#define ARGUMENTS_Receive buffer, count, type, source, tag, comm

/* Likewise for MPI_Mrecv and MPI_Imrecv. */
#define SIGNATURE_Matched(Count, Place) void *buffer, Count count, MPI_Datatype type, MPI_Message *message
#define ARGUMENTS_Matched buffer, count, type, message

/* Likewise for MPI_Sendrecv and MPI_Isendrecv, and their _replace forms. */
#define SIGNATURE_Exchange(Count, Place)                                                               \
    const void *buffer, Count count, MPI_Datatype type, int to, int tag, void *into, Count into_count, \
        MPI_Datatype into_type, int source, int into_tag, MPI_Comm comm
#define ARGUMENTS_Exchange buffer, count, type, to, tag, into, into_count, into_type, source, into_tag, comm
#define SIGNATURE_Replace(Count, Place) \
    void *buffer, Count count, MPI_Datatype type, int to, int tag, int source, int into_tag, MPI_Comm comm
#define ARGUMENTS_Replace buffer, count, type, to, tag, source, into_tag, comm

/* Collective operations. */
#define SIGNATURE_Barrier(Count, Place) MPI_Comm comm
#define ARGUMENTS_Barrier comm

#define SIGNATURE_Bcast(Count, Place) void *buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm
#define ARGUMENTS_Bcast buffer, count, type, root, comm

#define SIGNATURE_Reduce(Count, Place) \
    const void *from, void *into, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm
#define ARGUMENTS_Reduce from, into, count, type, op, root, comm

#define SIGNATURE_Allreduce(Count, Place) \
    const void *from, void *into, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define ARGUMENTS_Allreduce from, into, count, type, op, comm
#define SIGNATURE_Reduce_scatter_block SIGNATURE_Allreduce
#define ARGUMENTS_Reduce_scatter_block ARGUMENTS_Allreduce
#define SIGNATURE_Scan SIGNATURE_Allreduce
#define ARGUMENTS_Scan ARGUMENTS_Allreduce
#define SIGNATURE_Exscan SIGNATURE_Allreduce
#define ARGUMENTS_Exscan ARGUMENTS_Allreduce

#define SIGNATURE_Reduce_scatter(Count, Place) \
    const void *from, void *into, const Count counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm
#define ARGUMENTS_Reduce_scatter from, into, counts, type, op, comm

#define SIGNATURE_Gather(Count, Place)                                                                      \
    const void *from, Count count, MPI_Datatype type, void *into, Count into_count, MPI_Datatype into_type, \
        int root, MPI_Comm comm
#define ARGUMENTS_Gather from, count, type, into, into_count, into_type, root, comm
#define SIGNATURE_Scatter SIGNATURE_Gather
#define ARGUMENTS_Scatter ARGUMENTS_Gather

#define SIGNATURE_Gatherv(Count, Place)                                                      \
    const void *from, Count count, MPI_Datatype type, void *into, const Count into_counts[], \
        const Place into_displs[], MPI_Datatype into_type, int root, MPI_Comm comm
#define ARGUMENTS_Gatherv from, count, type, into, into_counts, into_displs, into_type, root, comm

#define SIGNATURE_Scatterv(Count, Place)                                                         \
    const void *from, const Count counts[], const Place displs[], MPI_Datatype type, void *into, \
        Count into_count, MPI_Datatype into_type, int root, MPI_Comm comm
#define ARGUMENTS_Scatterv from, counts, displs, type, into, into_count, into_type, root, comm

#define SIGNATURE_Allgather(Count, Place)                                                                   \
    const void *from, Count count, MPI_Datatype type, void *into, Count into_count, MPI_Datatype into_type, \
        MPI_Comm comm
#define ARGUMENTS_Allgather from, count, type, into, into_count, into_type, comm
#define SIGNATURE_Alltoall SIGNATURE_Allgather
#define ARGUMENTS_Alltoall ARGUMENTS_Allgather

#define SIGNATURE_Allgatherv(Count, Place)                                                   \
    const void *from, Count count, MPI_Datatype type, void *into, const Count into_counts[], \
        const Place into_displs[], MPI_Datatype into_type, MPI_Comm comm
#define ARGUMENTS_Allgatherv from, count, type, into, into_counts, into_displs, into_type, comm

#define SIGNATURE_Alltoallv(Count, Place)                                                        \
    const void *from, const Count counts[], const Place displs[], MPI_Datatype type, void *into, \
        const Count into_counts[], const Place into_displs[], MPI_Datatype into_type, MPI_Comm comm
#define ARGUMENTS_Alltoallv from, counts, displs, type, into, into_counts, into_displs, into_type, comm

#define SIGNATURE_Alltoallw(Count, Place)                                                                 \
    const void *from, const Count counts[], const Place displs[], const MPI_Datatype types[], void *into, \
        const Count into_counts[], const Place into_displs[], const MPI_Datatype into_types[], MPI_Comm comm
#define ARGUMENTS_Alltoallw from, counts, displs, types, into, into_counts, into_displs, into_types, comm

/* Neighbourhood collectives. */
#define SIGNATURE_Neighbor_allgather SIGNATURE_Allgather
#define ARGUMENTS_Neighbor_allgather ARGUMENTS_Allgather
#define SIGNATURE_Neighbor_allgatherv SIGNATURE_Allgatherv
#define ARGUMENTS_Neighbor_allgatherv ARGUMENTS_Allgatherv
#define SIGNATURE_Neighbor_alltoall SIGNATURE_Allgather
#define ARGUMENTS_Neighbor_alltoall ARGUMENTS_Allgather
#define SIGNATURE_Neighbor_alltoallv SIGNATURE_Alltoallv
#define ARGUMENTS_Neighbor_alltoallv ARGUMENTS_Alltoallv
/* Displacements are MPI_Aint in both forms. */
#define SIGNATURE_Neighbor_alltoallw(Count, Place) SIGNATURE_Alltoallw(Count, MPI_Aint)
#define ARGUMENTS_Neighbor_alltoallw ARGUMENTS_Alltoallw

/* One-sided operations. */
#define SIGNATURE_Put(Count, Place)                                                               \
    const void *buffer, Count count, MPI_Datatype type, int to, MPI_Aint place, Count into_count, \
        MPI_Datatype into_type, MPI_Win window
#define ARGUMENTS_Put buffer, count, type, to, place, into_count, into_type, window

#define SIGNATURE_Get(Count, Place)                                                         \
    void *buffer, Count count, MPI_Datatype type, int to, MPI_Aint place, Count into_count, \
        MPI_Datatype into_type, MPI_Win window
#define ARGUMENTS_Get ARGUMENTS_Put

#define SIGNATURE_Accumulate(Count, Place)                                                        \
    const void *buffer, Count count, MPI_Datatype type, int to, MPI_Aint place, Count into_count, \
        MPI_Datatype into_type, MPI_Op op, MPI_Win window
#define ARGUMENTS_Accumulate buffer, count, type, to, place, into_count, into_type, op, window

#define SIGNATURE_Get_accumulate(Count, Place)                                                      \
    const void *buffer, Count count, MPI_Datatype type, void *result, Count result_count,           \
        MPI_Datatype result_type, int to, MPI_Aint place, Count into_count, MPI_Datatype into_type, \
        MPI_Op op, MPI_Win window
#define ARGUMENTS_Get_accumulate \
    buffer, count, type, result, result_count, result_type, to, place, into_count, into_type, op, window

#define SIGNATURE_Fetch_and_op(Count, Place) \
    const void *buffer, void *result, MPI_Datatype type, int to, MPI_Aint place, MPI_Op op, MPI_Win window
#define ARGUMENTS_Fetch_and_op buffer, result, type, to, place, op, window

#define SIGNATURE_Compare_and_swap(Count, Place)                                                       \
    const void *buffer, const void *expected, void *result, MPI_Datatype type, int to, MPI_Aint place, \
        MPI_Win window
#define ARGUMENTS_Compare_and_swap buffer, expected, result, type, to, place, window

/* Windows. */
#define SIGNATURE_Win_create(Count, Place) \
    void *base, MPI_Aint size, Place unit, MPI_Info info, MPI_Comm comm, MPI_Win *window
#define ARGUMENTS_Win_create base, size, unit, info, comm, window
#define SIGNATURE_Win_allocate(Count, Place) \
    MPI_Aint size, Place unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window
#define ARGUMENTS_Win_allocate size, unit, info, comm, base, window
#define SIGNATURE_Win_allocate_shared SIGNATURE_Win_allocate
#define ARGUMENTS_Win_allocate_shared ARGUMENTS_Win_allocate

#endif
