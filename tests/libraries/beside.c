/* Collectives that go on beside the program: they get on in whatever call it waits, many at a time, and with
 * what they need although the program has freed it. Any deadlock here ends with the launcher's time. */
#include "native.h"

#include <pthread.h>
#include <string.h>

#define MANY 40
#define MAX_RANKS 64
#define ROUNDS 20
/* There are more of these than tags that every MPI has. */
#define VERY_MANY 33000

static int rank, size, wrong;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        wrong = 1;
    }
}

static int sum_of_ranks(void) { return size * (size - 1) / 2; }

/* Rank 0 of each pair waits for a message. The other sends it when the collective is over, with which rank 0
 * may have to help. */
static void they_get_on_while_the_program_receives(void)
{
    int found = 0, word = 0;
    MPI_Request request;
    MPI_Iallreduce(&rank, &found, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 0)
        for (int i = 1; i < size; i++)
            MPI_Recv(&word, 1, MPI_INT, i, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank > 0)
        MPI_Send(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    check(found == sum_of_ranks(), "an allreduce during receives");
}

/* The others come to the barrier when the broadcast, which rank 0 begins and may have to carry on, is
 * over. */
static void they_get_on_while_the_program_is_in_another_collective(void)
{
    static int data[100000];
    MPI_Comm other, copy;
    MPI_Request request;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    if (rank == 0)
        for (int i = 0; i < 100000; i++)
            data[i] = i;
    MPI_Ibcast(data, 100000, MPI_INT, 0, MPI_COMM_WORLD, &request);
    if (rank != 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Barrier(other);
    MPI_Comm_dup(other, &copy);
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(data[99999] == 99999 && data[77] == 77, "a broadcast during a barrier");
    MPI_Comm_free(&copy);
    MPI_Comm_free(&other);
}

static void many_go_on_at_a_time_and_end_in_any_order(void)
{
    static int found[MANY], got[MANY][1000];
    MPI_Request requests[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < 1000; j++)
            got[i][j] = rank == i % size ? i + j : -1;
        MPI_Iallreduce(&rank, &found[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Ibcast(got[i], 1000, MPI_INT, i % size, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    for (int i = 2 * MANY - 1; i >= 0; i--)
        MPI_Wait(&requests[rank % 2 ? i : 2 * MANY - 1 - i], MPI_STATUS_IGNORE);
    int right = 1;
    for (int i = 0; i < MANY; i++)
        right &= found[i] == sum_of_ranks() && got[i][0] == i && got[i][999] == i + 999;
    check(right, "many at a time");
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < 2 * *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void what_the_program_frees_is_kept_as_long_as_they_need_it(void)
{
    int from[2] = {rank, 1}, into[2];
    MPI_Datatype pair;
    MPI_Op op;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    /* The communicator's first collective comes first. */
    MPI_Barrier(comm);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(add, 1, &op);
    MPI_Iallreduce(from, into, 1, pair, op, comm, &request);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    MPI_Comm_free(&comm);
    check(pair == MPI_DATATYPE_NULL && op == MPI_OP_NULL && comm == MPI_COMM_NULL, "freed handles are null");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(into[0] == sum_of_ranks() && into[1] == size, "an allreduce with what has been freed");
}

/* The others start the operation when the first tells them that it has freed the communicator. */
static void freeing_a_communicator_waits_for_no_operation_of_it(void)
{
    int found = 0, word = 0;
    MPI_Comm comm;
    MPI_Request request;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    INIT(Allreduce)(&rank, &found, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    if (rank == 0)
        MPI_Start(&request);
    MPI_Comm_free(&comm);
    if (rank == 0) {
        for (int i = 1; i < size; i++)
            MPI_Send(&word, 1, MPI_INT, i, 7, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Start(&request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(found == sum_of_ranks(), "an allreduce on a communicator that has been freed");
    MPI_Request_free(&request);
}

static int freed_types;

static int count_freed(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type, (void)key, (void)value, (void)extra;
    freed_types++;
    return MPI_SUCCESS;
}

/* A datatype of two ints. Where it is freed, that is counted. */
static MPI_Datatype make_counted(int key)
{
    MPI_Datatype made;
    MPI_Type_contiguous(2, MPI_INT, &made);
    MPI_Type_commit(&made);
    MPI_Type_set_attr(made, key, NULL);
    return made;
}

static void a_persistent_request_keeps_only_types_that_it_names_and_only_as_long_as_it_lives(void)
{
    int data[2] = {rank, rank}, key;
    MPI_Request request;
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, count_freed, &key, NULL);
    MPI_Datatype named = make_counted(key), other = make_counted(key), last = make_counted(key);
    INIT(Bcast)(data, 1, named, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Type_free(&other);
    check(freed_types == 1, "a type that no request names is freed at once");
    MPI_Type_free(&named);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(data[1] == 0, "a persistent broadcast of a freed type");
    MPI_Request_free(&request);
    MPI_Type_free(&last);
    check(freed_types == 3, "a type is freed after the request that named it");
    MPI_Type_free_keyval(&key);
}

static void persistent_ones_start_in_any_order_again_and_again(void)
{
    int sums[3], bits[3];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    for (int i = 0; i < 3; i++)
        INIT(Allreduce)(&bits[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    /* Intel MPI's own add up wrongly where ranks start them in unlike order. */
    int right = 1, first = lets_others_progress() ? rank : 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++)
            bits[i] = round + i;
        if (round % 2)
            MPI_Startall(3, requests);
        else
            for (int i = 0; i < 3; i++)
                MPI_Start(&requests[(i + first) % 3]);
        MPI_Waitall(3, requests, statuses);
        for (int i = 0; i < 3; i++)
            right &= sums[i] == size * (round + i);
    }
    check(right, "persistent ones");
    for (int i = 0; i < 3; i++)
        MPI_Request_free(&requests[i]);
}

static void very_many_persistent_ones_are_there_at_a_time(void)
{
    MPI_Request *requests = malloc(VERY_MANY * sizeof *requests);
    int *found = malloc(VERY_MANY * sizeof *found), right = 1;
    for (int i = 0; i < VERY_MANY; i++)
        INIT(Allreduce)(&rank, &found[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]);
    for (int i = VERY_MANY - 1; i > 0; i -= VERY_MANY / 50) {
        MPI_Start(&requests[i]);
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        right &= found[i] == sum_of_ranks();
    }
    check(right, "very many persistent ones");
    for (int i = VERY_MANY - 1; i >= 0; i--)
        MPI_Request_free(&requests[i]);
    free(requests);
    free(found);
}

/* One of every hundred is kept, so that those made later get tags of others that have been freed. Each rank
 * starts them in an order of its own, and odd ranks free the others later. */
static void persistent_ones_that_are_freed_leave_their_tags_to_others(void)
{
    enum { EACH = 100, KEPT = VERY_MANY / EACH };
    static int from[KEPT], found[KEPT];
    static MPI_Request requests[KEPT];
    MPI_Request late = MPI_REQUEST_NULL, *goes;
    int right = 1, first = lets_others_progress() ? 7 * rank : 0;
    for (int i = 0; i < KEPT * EACH; i++) {
        MPI_Request *one = &requests[i / EACH];
        INIT(Allreduce)(&from[i / EACH], &found[i / EACH], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                        one);
        if (i % EACH == EACH - 1)
            continue;
        goes = rank % 2 ? &late : one;
        if (*goes != MPI_REQUEST_NULL)
            MPI_Request_free(goes);
        late = *one;
    }
    if (rank % 2)
        MPI_Request_free(&late);
    for (int i = 0; i < KEPT; i++)
        from[i] = i;
    for (int i = 0; i < KEPT; i++)
        MPI_Start(&requests[(i + first) % KEPT]);
    for (int i = 0; i < KEPT; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    for (int i = 0; i < KEPT; i++) {
        right &= found[i] == i * size;
        MPI_Request_free(&requests[i]);
    }
    check(right, "persistent ones with tags of others that have been freed");
}

static int raised;
static MPI_Comm raised_on;

static void count_raised(MPI_Comm *comm, int *code, ...)
{
    (void)code;
    raised++;
    raised_on = *comm;
}

/* Rank 1 sends more than rank 0 has room for, which says so when the request is completed, not before. */
static void end_failed(MPI_Request *request, MPI_Comm comm, int is_returned, const char *what)
{
    int word = 0, before = raised;
    /* This comes behind what rank 1 has sent. */
    for (int i = 0; i < ROUNDS && rank < 2; i++)
        MPI_Sendrecv_replace(&word, 1, MPI_INT, 1 - rank, 7, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(raised == before, "an error handler is called by the call that completes a request");
    int status = MPI_Wait(request, MPI_STATUS_IGNORE);
    if (rank == 0 && is_returned)
        check(status != MPI_SUCCESS && raised == before, what);
    else if (rank == 0)
        check(raised == before + 1 && raised_on == comm, what);
    else
        check(status == MPI_SUCCESS && raised == before, "a rank without failure");
}

static void a_failure_goes_to_the_error_handler_from_the_call_that_completes_the_request(void)
{
    int ones[MAX_RANKS], places[MAX_RANKS], in[MAX_RANKS], out[2] = {rank, rank};
    MPI_Comm comm;
    MPI_Request request, kept;
    MPI_Errhandler counts;
    for (int i = 0; i < size; i++)
        ones[i] = 1, places[i] = i;
    MPI_Comm_create_errhandler(count_raised, &counts);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, counts);
    MPI_Barrier(comm);
    MPI_Igatherv(out, rank == 1 ? 2 : 1, MPI_INT, in, ones, places, MPI_INT, 0, comm, &request);
    end_failed(&request, comm, 0, "a failure on a communicator");
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Igatherv(out, rank == 1 ? 2 : 1, MPI_INT, in, ones, places, MPI_INT, 0, comm, &request);
    end_failed(&request, comm, 1, "a failure that is to be returned");
    INIT(Gatherv)(out, rank == 1 ? 2 : 1, MPI_INT, in, ones, places, MPI_INT, 0, comm, MPI_INFO_NULL, &kept);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    MPI_Comm_free(&comm);
    MPI_Start(&kept);
    end_failed(&kept, MPI_COMM_WORLD, 0, "a failure on a communicator that has been freed");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    /* Open MPI frees a request that has failed. */
    if (kept != MPI_REQUEST_NULL)
        MPI_Request_free(&kept);
    MPI_Errhandler_free(&counts);
}

static void *of_one_thread(void *argument)
{
    MPI_Comm comm = *(MPI_Comm *)argument;
    int *right = calloc(1, sizeof *right), found;
    *right = 1;
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request request;
        MPI_Iallreduce(&rank, &found, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        *right &= found == sum_of_ranks();
    }
    return right;
}

static void threads_have_their_own(void)
{
    pthread_t threads[3];
    MPI_Comm comms[3];
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_Barrier(comms[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, of_one_thread, &comms[i]);
    for (int i = 0; i < 3; i++) {
        void *right;
        pthread_join(threads[i], &right);
        check(*(int *)right, "threads");
        free(right);
        MPI_Comm_free(&comms[i]);
    }
}

int main(int argc, char **argv)
{
    int provided, wants_threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    MPI_Init_thread(&argc, &argv, wants_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    they_get_on_while_the_program_receives();
    they_get_on_while_the_program_is_in_another_collective();
    many_go_on_at_a_time_and_end_in_any_order();
    what_the_program_frees_is_kept_as_long_as_they_need_it();
    freeing_a_communicator_waits_for_no_operation_of_it();
    a_persistent_request_keeps_only_types_that_it_names_and_only_as_long_as_it_lives();
    persistent_ones_start_in_any_order_again_and_again();
    if (lets_others_progress())
        a_failure_goes_to_the_error_handler_from_the_call_that_completes_the_request();
    persistent_ones_that_are_freed_leave_their_tags_to_others();
    very_many_persistent_ones_are_there_at_a_time();
    if (wants_threads && provided == MPI_THREAD_MULTIPLE)
        threads_have_their_own();
    int any = 0;
    MPI_Reduce(&wrong, &any, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("collectives beside the program on %d ranks%s: %s\n", size,
               provided == MPI_THREAD_MULTIPLE ? " with threads" : "", any ? "WRONG" : "right");
    MPI_Finalize();
    return any;
}
