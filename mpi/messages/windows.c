/* One-sided operations. What is fetched comes from the rank that is named. */
#define _GNU_SOURCE
#include "messages/counting.h"

#define P_Put                                                                                                \
    const void *buffer, int count, MPI_Datatype type, int to, MPI_Aint at, int room, MPI_Datatype into_type, \
        MPI_Win win
#define L_Put                                                                                    \
    const void *buffer, MPI_Count count, MPI_Datatype type, int to, MPI_Aint at, MPI_Count room, \
        MPI_Datatype into_type, MPI_Win win
#define A_Put buffer, count, type, to, at, room, into_type, win

#define P_Get                                                                                          \
    void *buffer, int count, MPI_Datatype type, int to, MPI_Aint at, int room, MPI_Datatype into_type, \
        MPI_Win win
#define L_Get                                                                              \
    void *buffer, MPI_Count count, MPI_Datatype type, int to, MPI_Aint at, MPI_Count room, \
        MPI_Datatype into_type, MPI_Win win
#define A_Get A_Put

#define P_Accumulate                                                                                         \
    const void *buffer, int count, MPI_Datatype type, int to, MPI_Aint at, int room, MPI_Datatype into_type, \
        MPI_Op op, MPI_Win win
#define L_Accumulate                                                                             \
    const void *buffer, MPI_Count count, MPI_Datatype type, int to, MPI_Aint at, MPI_Count room, \
        MPI_Datatype into_type, MPI_Op op, MPI_Win win
#define A_Accumulate buffer, count, type, to, at, room, into_type, op, win

#define P_Get_accumulate                                                                            \
    const void *buffer, int count, MPI_Datatype type, void *result, int result_room,                \
        MPI_Datatype result_type, int to, MPI_Aint at, int room, MPI_Datatype into_type, MPI_Op op, \
        MPI_Win win
#define L_Get_accumulate                                                                                  \
    const void *buffer, MPI_Count count, MPI_Datatype type, void *result, MPI_Count result_room,          \
        MPI_Datatype result_type, int to, MPI_Aint at, MPI_Count room, MPI_Datatype into_type, MPI_Op op, \
        MPI_Win win
#define A_Get_accumulate \
    buffer, count, type, result, result_room, result_type, to, at, room, into_type, op, win

#define P_Fetch_and_op \
    const void *buffer, void *result, MPI_Datatype type, int to, MPI_Aint at, MPI_Op op, MPI_Win win
#define A_Fetch_and_op buffer, result, type, to, at, op, win
#define P_Compare_and_swap                                                                          \
    const void *buffer, const void *expected, void *result, MPI_Datatype type, int to, MPI_Aint at, \
        MPI_Win win
#define A_Compare_and_swap buffer, expected, result, type, to, at, win

static void moved(const char *call, int64_t bytes, int to, MPI_Win win)
{
    if (to != MPI_PROC_NULL)
        counts_add(call, peers_rank_of_window(win, to), 0, bytes);
}

#define MOVED(Name) moved(#Name, peers_bytes(count, type), to, win)

BOTH_COUNTS(Put, Put, MOVED(Put));
BOTH_COUNTS(Get, Get, MOVED(Get));
BOTH_COUNTS(Accumulate, Accumulate, MOVED(Accumulate));
/* With MPI_NO_OP what is given may be anything. */
#define FETCHED(Name) moved(#Name, peers_bytes(result_room, result_type), to, win)
BOTH_COUNTS(Get_accumulate, Get_accumulate, FETCHED(Get_accumulate));
BOTH_COUNTS_REQUEST(Rput, Put, MOVED(Rput));
BOTH_COUNTS_REQUEST(Rget, Get, MOVED(Rget));
BOTH_COUNTS_REQUEST(Raccumulate, Accumulate, MOVED(Raccumulate));
BOTH_COUNTS_REQUEST(Rget_accumulate, Get_accumulate, FETCHED(Rget_accumulate));
COUNTED(Fetch_and_op, Fetch_and_op, moved("Fetch_and_op", peers_bytes(1, type), to, win));
COUNTED(Compare_and_swap, Compare_and_swap, moved("Compare_and_swap", peers_bytes(1, type), to, win));
