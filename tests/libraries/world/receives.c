/* receives SEEDS [FIRST]: random messages to one rank, which receives them with random wildcards, by every
 * call that completes, probes, and takes receives back. Judged by MPI's rule: of two messages of one sender
 * that a receive matches, it gets the earlier. */
#include "world_test.h"

enum { MESSAGES = 300, OPEN = 12, MOST_RECEIVES = 20000, LONGEST = 70000, TAGS = 3 };

struct receive {
    int source, tag, got_source, got_tag, got_number, is_done;
    MPI_Request request;
    int *buffer;
};

static struct receive all[MOST_RECEIVES];
static int count, open_ones[OPEN], open_count, got;
static long pairs, wildcards, cancelled, probed;

static void send_all(int sink)
{
    int *out = calloc(LONGEST, sizeof *out);
    for (int i = 0; i < MESSAGES; i++) {
        int length = draw(40) == 0 ? LONGEST : draw(8) == 0 ? 4000 : 1, tag = 1 + (int)draw(TAGS);
        out[0] = i;
        if (draw(8) == 0) {
            MPI_Ssend(out, length, MPI_INT, sink, tag, MPI_COMM_WORLD);
        } else if (draw(2)) {
            MPI_Send(out, length, MPI_INT, sink, tag, MPI_COMM_WORLD);
        } else {
            MPI_Request request;
            MPI_Isend(out, length, MPI_INT, sink, tag, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    free(out);
}

static struct receive *post(int source, int tag)
{
    struct receive *receive = &all[count];
    *receive = (struct receive){.source = source, .tag = tag, .buffer = malloc(LONGEST * sizeof(int))};
    wildcards += source == MPI_ANY_SOURCE;
    MPI_Irecv(receive->buffer, LONGEST, MPI_INT, source, tag, MPI_COMM_WORLD, &receive->request);
    open_ones[open_count++] = count++;
    return receive;
}

static void is_done(struct receive *receive, const MPI_Status *status)
{
    receive->is_done = 1;
    receive->got_source = status->MPI_SOURCE;
    receive->got_tag = status->MPI_TAG;
    receive->got_number = receive->buffer[0];
    got++;
}

/* Completes what has come, one way or another; returns how many. */
static int complete_some(void)
{
    MPI_Request requests[OPEN];
    MPI_Status statuses[OPEN];
    int indices[OPEN], many = 0, flag = 0, before = got;
    for (int i = 0; i < open_count; i++)
        requests[i] = all[open_ones[i]].request;
    switch (draw(4)) {
    case 0:
        MPI_Testany(open_count, requests, indices, &flag, statuses);
        many = flag && indices[0] != MPI_UNDEFINED;
        break;
    case 1:
        MPI_Testsome(open_count, requests, &many, indices, statuses);
        many = many == MPI_UNDEFINED ? 0 : many;
        break;
    case 2:
        MPI_Testall(open_count, requests, &flag, statuses);
        for (int i = 0; flag && i < open_count; i++)
            indices[many++] = i;
        break;
    default:
        for (int i = 0; i < open_count; i++) {
            MPI_Test(&requests[i], &flag, &statuses[many]);
            if (flag)
                indices[many++] = i;
        }
    }
    for (int i = 0; i < many; i++)
        is_done(&all[open_ones[indices[i]]], &statuses[i]);
    int left = 0;
    for (int i = 0; i < open_count; i++)
        if (!all[open_ones[i]].is_done)
            all[open_ones[left++] = open_ones[i]].request = requests[i];
        else
            free(all[open_ones[i]].buffer);
    open_count = left;
    return got - before;
}

/* What a probe reports is there for the next receive of that source and tag. */
static void probe(void)
{
    MPI_Status status, received;
    int source = draw(2) ? MPI_ANY_SOURCE : (int)draw((unsigned)size), is_matched = (int)draw(2);
    int tag = draw(2) ? MPI_ANY_TAG : 1 + (int)draw(TAGS), flag = 0, length, again;
    MPI_Message message;
    if (count == MOST_RECEIVES)
        return;
    if (is_matched)
        MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, &status);
    else
        MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, &status);
    if (!flag)
        return;
    MPI_Get_count(&status, MPI_INT, &length);
    struct receive *receive = &all[count++];
    *receive = (struct receive){.source = status.MPI_SOURCE, .tag = status.MPI_TAG};
    receive->buffer = malloc(LONGEST * sizeof(int));
    if (is_matched)
        MPI_Mrecv(receive->buffer, length, MPI_INT, &message, &received);
    else
        MPI_Recv(receive->buffer, length, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                 &received);
    MPI_Get_count(&received, MPI_INT, &again);
    CHECK(again == length && received.MPI_SOURCE == status.MPI_SOURCE && received.MPI_TAG == status.MPI_TAG);
    is_done(receive, &received);
    free(receive->buffer);
    probed++;
}

static void take_back_all(void)
{
    for (int i = 0; i < open_count; i++) {
        struct receive *receive = &all[open_ones[i]];
        MPI_Status status;
        int flag;
        MPI_Cancel(&receive->request);
        MPI_Wait(&receive->request, &status);
        MPI_Test_cancelled(&status, &flag);
        if (flag)
            cancelled++;
        else
            is_done(receive, &status);
        free(receive->buffer);
    }
    open_count = 0;
}

static void receive_all(int sink)
{
    int idle = 0, is_calm = 0;
    count = got = open_count = 0;
    while (got < MESSAGES * (size - 1)) {
        while (open_count < (is_calm ? 1 : OPEN) && count < MOST_RECEIVES) {
            int source = is_calm || draw(3) == 0 ? MPI_ANY_SOURCE : (int)draw((unsigned)size);
            post(source == sink ? MPI_ANY_SOURCE : source,
                 is_calm || draw(3) == 0 ? MPI_ANY_TAG : 1 + (int)draw(TAGS));
            is_calm = 0;
        }
        CHECK(count < MOST_RECEIVES);
        if (draw(10) == 0)
            probe();
        if (complete_some()) {
            idle = 0;
        } else if (++idle > 2000) {
            /* Nothing comes that any of them matches. */
            take_back_all();
            idle = 0;
            is_calm = 1;
        }
    }
    take_back_all();
}

static void judge(int sink)
{
    for (int source = 0; source < size; source++) {
        int by[MESSAGES];
        memset(by, -1, sizeof by);
        for (int i = 0; i < count; i++) {
            const struct receive *receive = &all[i];
            if (!receive->is_done || receive->got_source != source)
                continue;
            CHECK(receive->got_number >= 0 && receive->got_number < MESSAGES && by[receive->got_number] < 0);
            CHECK(receive->source == MPI_ANY_SOURCE || receive->source == source);
            CHECK(receive->tag == MPI_ANY_TAG || receive->tag == receive->got_tag);
            by[receive->got_number] = i;
        }
        for (int i = 0; i < MESSAGES && source != sink; i++) {
            CHECK(by[i] >= 0);
            for (int k = i + 1; k < MESSAGES; k++, pairs++)
                CHECK(by[k] < 0 || by[k] > by[i] ||
                      (all[by[k]].tag != MPI_ANY_TAG && all[by[k]].tag != all[by[i]].got_tag));
        }
    }
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    int seeds = argc > 1 ? atoi(argv[1]) : 4, first = argc > 2 ? atoi(argv[2]) : 1;
    for (int seed = first; seed < first + seeds; seed++) {
        int sink = seed % size;
        state = (uint64_t)(seed * 977 + rank);
        if (rank == sink) {
            receive_all(sink);
            judge(sink);
            if (wrong)
                printf("seed %d\n", seed);
        } else {
            send_all(sink);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 1 % size)
        printf("rank %d: %ld pairs, %ld wildcards, %ld cancelled, %ld probed\n", rank, pairs, wildcards,
               cancelled, probed);
    return end("receives");
}
