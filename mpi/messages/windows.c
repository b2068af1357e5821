/* One-sided operations. Fetched data comes from the target rank, and is counted there. */
#define _GNU_SOURCE
#include "messages/counting.h"

static void moved(const char *call, int64_t bytes, int to, MPI_Win window)
{
    if (to != MPI_PROC_NULL)
        counts_add(call, peers_rank_of_window(window, to), 0, bytes);
}

#define MOVED(Name) moved(#Name, peers_bytes(count, type), to, window)

BOTH_COUNTS(Put, Put, MOVED(Put));
BOTH_COUNTS(Get, Get, MOVED(Get));
BOTH_COUNTS(Accumulate, Accumulate, MOVED(Accumulate));
/* With MPI_NO_OP the origin arguments may be anything, so the size of the result counts. */
#define FETCHED(Name) moved(#Name, peers_bytes(result_count, result_type), to, window)
BOTH_COUNTS(Get_accumulate, Get_accumulate, FETCHED(Get_accumulate));
BOTH_COUNTS_REQUEST(Rput, Put, MOVED(Rput));
BOTH_COUNTS_REQUEST(Rget, Get, MOVED(Rget));
BOTH_COUNTS_REQUEST(Raccumulate, Accumulate, MOVED(Raccumulate));
BOTH_COUNTS_REQUEST(Rget_accumulate, Get_accumulate, FETCHED(Rget_accumulate));
COUNTED(Fetch_and_op, Fetch_and_op, moved("Fetch_and_op", peers_bytes(1, type), to, window));
COUNTED(Compare_and_swap, Compare_and_swap, moved("Compare_and_swap", peers_bytes(1, type), to, window));
