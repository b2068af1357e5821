/* messages: every kind of message between every pair of ranks, its data, its status, its errors. */
#include "world_test.h"

static void blocking_pairs(void)
{
    for (int from = 0; from < size; from++)
        for (int to = 0; to < size; to++) {
            double out[3] = {from, to, 0.5}, in[5] = {0};
            MPI_Status status;
            int count;
            if (rank == from && from != to)
                MPI_Send(out, 3, MPI_DOUBLE, to, 10 * from + to, MPI_COMM_WORLD);
            if (rank == to && from != to) {
                MPI_Recv(in, 5, MPI_DOUBLE, from, 10 * from + to, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_DOUBLE, &count);
                CHECK(count == 3 && in[0] == from && in[1] == to && in[2] == 0.5);
                CHECK(status.MPI_SOURCE == from && status.MPI_TAG == 10 * from + to);
            }
        }
}

static void all_to_all_of_every_size(void)
{
    MPI_Request *requests = malloc(2 * (size_t)size * sizeof *requests);
    MPI_Status *statuses = malloc(2 * (size_t)size * sizeof *statuses);
    for (size_t bytes = 1; bytes <= 4 << 20; bytes *= 16) {
        char *in = malloc(bytes * (size_t)size), *out = malloc(bytes * (size_t)size);
        for (int i = 0; i < size; i++) {
            memset(out + (size_t)i * bytes, 16 * rank + i, bytes);
            MPI_Irecv(in + (size_t)i * bytes, (int)bytes, MPI_CHAR, i, 7, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < size; i++)
            MPI_Isend(out + (size_t)i * bytes, (int)bytes, MPI_CHAR, i, 7, MPI_COMM_WORLD,
                      &requests[size + i]);
        MPI_Waitall(2 * size, requests, statuses);
        for (int i = 0; i < size; i++) {
            int count;
            MPI_Get_count(&statuses[i], MPI_CHAR, &count);
            CHECK(count == (int)bytes && statuses[i].MPI_SOURCE == i && statuses[i].MPI_TAG == 7);
            CHECK(requests[i] == MPI_REQUEST_NULL && requests[size + i] == MPI_REQUEST_NULL);
            const char *block = in + (size_t)i * bytes;
            CHECK(block[0] == (char)(16 * i + rank) && block[bytes - 1] == (char)(16 * i + rank));
        }
        free(in);
        free(out);
    }
    free(requests);
    free(statuses);
}

/* Messages that nobody asks for yet, far more than is held, are received in another order. */
static void large_ones_out_of_order(void)
{
    enum { MANY = 6, INTS = 1 << 20 };
    int to = (rank + size / 2) % size, from = (rank + size - size / 2) % size;
    int *out = malloc(INTS * sizeof *out), *in = malloc(INTS * sizeof *in);
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    for (int i = 0; i < INTS; i++)
        out[i] = rank + i;
    for (int i = 0; i < MANY; i++)
        MPI_Isend(out, INTS, MPI_INT, to, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = MANY - 1; i >= 0; i--) {
        memset(in, 0, INTS * sizeof *in);
        MPI_Recv(in, INTS, MPI_INT, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in[0] == from && in[INTS - 1] == from + INTS - 1);
    }
    MPI_Waitall(MANY, requests, statuses);
    free(out);
    free(in);
}

struct holes {
    char c;
    double d;
    int i;
    short s;
};

static MPI_Datatype type_with_holes(void)
{
    int lengths[4] = {1, 1, 1, 1};
    MPI_Aint at[4] = {offsetof(struct holes, c), offsetof(struct holes, d), offsetof(struct holes, i),
                      offsetof(struct holes, s)};
    MPI_Datatype parts[4] = {MPI_CHAR, MPI_DOUBLE, MPI_INT, MPI_SHORT}, bare, type;
    MPI_Type_create_struct(4, lengths, at, parts, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(struct holes), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&bare);
    return type;
}

/* The type is freed while a receive of it is pending. */
static void types_with_holes(void)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size, count, elements;
    struct holes out[3], in[3];
    MPI_Datatype type = type_with_holes(), free_early;
    MPI_Type_dup(type, &free_early);
    memset(in, 0, sizeof in);
    for (int i = 0; i < 3; i++)
        out[i] = (struct holes){(char)('a' + i), rank + i / 8.0, 10 * rank + i, (short)i};
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in, 3, free_early, from, 21, MPI_COMM_WORLD, &request);
    MPI_Type_free(&free_early);
    MPI_Send(out, 2, type, to, 21, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, type, &count);
    MPI_Get_elements(&status, type, &elements);
    CHECK(count == 2 && elements == 8);
    for (int i = 0; i < 2; i++)
        CHECK(in[i].c == 'a' + i && in[i].d == from + i / 8.0 && in[i].i == 10 * from + i && in[i].s == i);
    CHECK(in[2].d == 0 && in[2].i == 0);
    MPI_Type_free(&type);
    struct {
        double d;
        int i;
    } pair = {rank, 7}, other;
    MPI_Sendrecv(&pair, 1, MPI_DOUBLE_INT, to, 22, &other, 1, MPI_DOUBLE_INT, from, 22, MPI_COMM_WORLD,
                 &status);
    CHECK(other.d == from && other.i == 7);
}

static void a_buffer_that_is_replaced(void)
{
    int data[3] = {rank, -1, 10 * rank}, from = (rank + size - 1) % size;
    MPI_Datatype type;
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Sendrecv_replace(data, 1, type, (rank + 1) % size, 24, from, 24, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(data[0] == from && data[1] == -1 && data[2] == 10 * from);
    MPI_Type_free(&type);
}

/* A type may be freed once its requests are made. */
static void persistent_requests_outlive_their_type(void)
{
    int far = (rank + size / 2) % size, back = (rank + size - size / 2) % size;
    int out[3] = {rank, -1, 10 * rank}, in[3] = {-1, -1, -1};
    MPI_Datatype type;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Type_vector(2, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Recv_init(in, 1, type, back, 46, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 1, type, far, 46, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    for (int round = 0; round < 3; round++) {
        in[0] = in[2] = -1;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        CHECK(in[0] == back && in[1] == -1 && in[2] == 10 * back);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Each rank's neighbours, a far one and any, in every round; one that was never started is freed too. */
static void persistent_requests(void)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, far = (rank + size / 2) % size;
    int back = (rank + size - size / 2) % size, out, in[3], idle = 0, flag;
    MPI_Request requests[6];
    MPI_Status statuses[6];
    MPI_Recv_init(&in[0], 1, MPI_INT, left, 41, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&in[1], 1, MPI_INT, back, 42, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(&in[2], 1, MPI_INT, MPI_ANY_SOURCE, 43, MPI_COMM_WORLD, &requests[2]);
    MPI_Send_init(&out, 1, MPI_INT, right, 41, MPI_COMM_WORLD, &requests[3]);
    MPI_Ssend_init(&out, 1, MPI_INT, far, 42, MPI_COMM_WORLD, &requests[4]);
    MPI_Send_init(&out, 1, MPI_INT, right, 43, MPI_COMM_WORLD, &requests[5]);
    for (int round = 0; round < 20; round++) {
        out = 100 * rank + round;
        in[0] = in[1] = in[2] = -1;
        MPI_Start(&requests[0]);
        MPI_Startall(5, &requests[1]);
        if (round % 3 == 0) {
            MPI_Waitall(6, requests, statuses);
        } else if (round % 3 == 1) {
            for (int i = 0, at; i < 6; i++) {
                MPI_Status status;
                MPI_Waitany(6, requests, &at, &status);
                CHECK(at >= 0 && at < 6);
                statuses[at] = status;
            }
        } else {
            for (int i = 5; i >= 0; i--)
                MPI_Wait(&requests[i], &statuses[i]);
        }
        CHECK(in[0] == 100 * left + round && in[1] == 100 * back + round && in[2] == 100 * left + round);
        CHECK(statuses[0].MPI_SOURCE == left && statuses[1].MPI_SOURCE == back &&
              statuses[2].MPI_SOURCE == left);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Testall(6, requests, &flag, statuses);
    CHECK(flag);
    MPI_Start(&requests[1]);
    MPI_Cancel(&requests[1]);
    MPI_Wait(&requests[1], &statuses[1]);
    MPI_Test_cancelled(&statuses[1], &idle);
    CHECK(idle);
    for (int i = 0; i < 6; i++)
        MPI_Request_free(&requests[i]);
    CHECK(requests[0] == MPI_REQUEST_NULL);
}

/* A message that a matched probe has taken is not there for others, and is received by its name. */
static void matched_probes(void)
{
    enum { INTS = 100000 };
    int *out = malloc(INTS * sizeof *out), *in = malloc(INTS * sizeof *in);
    for (int i = 0; i < INTS; i++)
        out[i] = rank + i;
    for (int from = 0; from < size; from++) {
        for (int to = 0; to < size; to++) {
            if (rank == from && to != from) {
                MPI_Request requests[2];
                MPI_Status statuses[2];
                MPI_Isend(out, INTS, MPI_INT, to, 51, MPI_COMM_WORLD, &requests[0]);
                MPI_Isend(&to, 1, MPI_INT, to, 51, MPI_COMM_WORLD, &requests[1]);
                MPI_Waitall(2, requests, statuses);
            }
            if (rank != to || to == from)
                continue;
            MPI_Message message;
            MPI_Status status;
            MPI_Request request;
            int count, x = -1;
            MPI_Mprobe(from % 2 ? MPI_ANY_SOURCE : from, 51, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == INTS && status.MPI_SOURCE == from && status.MPI_TAG == 51);
            MPI_Recv(&x, 1, MPI_INT, from, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(x == to);
            if (to % 2) {
                MPI_Mrecv(in, INTS, MPI_INT, &message, &status);
            } else {
                MPI_Imrecv(in, INTS, MPI_INT, &message, &request);
                MPI_Wait(&request, &status);
            }
            CHECK(message == MPI_MESSAGE_NULL && status.MPI_SOURCE == from &&
                  in[INTS - 1] == from + INTS - 1);
        }
        /* It takes these from any source, so the next sender may not begin before. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(out);
    free(in);
}

static void buffered_sends(void)
{
    int x = rank, y = -1, bytes, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    MPI_Pack_size(1, MPI_INT, MPI_COMM_WORLD, &bytes);
    bytes = 2 * (bytes + MPI_BSEND_OVERHEAD);
    char *buffer = malloc((size_t)bytes);
    MPI_Buffer_attach(buffer, bytes);
    MPI_Bsend(&x, 1, MPI_INT, right, 61, MPI_COMM_WORLD);
    MPI_Ibsend(&x, 1, MPI_INT, right, 62, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    x = -5;
    MPI_Recv(&y, 1, MPI_INT, left, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(y == left);
    MPI_Recv(&y, 1, MPI_INT, left, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(y == left);
    MPI_Buffer_detach(&buffer, &bytes);
    free(buffer);
}

static void cancels(void)
{
    int x, flag, far = (rank + size / 2) % size;
    MPI_Request request;
    MPI_Status status;
    const int sources[] = {far, MPI_ANY_SOURCE};
    for (int i = 0; i < 2; i++) {
        MPI_Irecv(&x, 1, MPI_INT, sources[i], 99, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag && request == MPI_REQUEST_NULL);
    }
}

static int class_of(int error)
{
    int class;
    MPI_Error_class(error, &class);
    return class;
}

static void a_message_that_is_too_long_is_an_error(void)
{
    int x[4] = {1, 2, 3, 4}, y[2] = {0, -1}, far = (rank + size / 2) % size,
        from = (rank + size - size / 2) % size;
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Irecv(y, 1, MPI_INT, from, 11, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(x, 4, MPI_INT, far, 11, MPI_COMM_WORLD, &requests[1]);
    CHECK(class_of(MPI_Wait(&requests[0], &status)) == MPI_ERR_TRUNCATE);
    CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(y[1] == -1);
    MPI_Irecv(y, 1, MPI_INT, from, 12, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(x, 4, MPI_INT, far, 12, MPI_COMM_WORLD, &requests[1]);
    CHECK(class_of(MPI_Waitall(2, requests, statuses)) == MPI_ERR_IN_STATUS);
    CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
    CHECK(class_of(MPI_Send(x, 1, MPI_INT, size, 0, MPI_COMM_WORLD)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Send(x, -1, MPI_INT, far, 0, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Recv(x, 1, MPI_INT, far, -77, MPI_COMM_WORLD, &status)) == MPI_ERR_TAG);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Such a send is done only when it has been received: the receiver answers by another message first. */
static void synchronous_sends(void)
{
    int x = 5, y = 0, flag = 1, far = (rank + size / 2) % size;
    MPI_Request request;
    if (size % 2)
        return;
    if (rank < size / 2) {
        MPI_Issend(&x, 1, MPI_INT, far, 31, MPI_COMM_WORLD, &request);
        MPI_Recv(&y, 1, MPI_INT, far, 32, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        MPI_Send(&x, 1, MPI_INT, far, 33, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ssend(&x, 1, MPI_INT, far, 34, MPI_COMM_WORLD);
    } else {
        MPI_Send(&x, 1, MPI_INT, far, 32, MPI_COMM_WORLD);
        MPI_Recv(&y, 1, MPI_INT, far, 33, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&y, 1, MPI_INT, far, 31, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&y, 1, MPI_INT, far, 34, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(y == 5);
    }
}

/* A rank waits in a collective of its site while a far one sends to it, and its neighbour waits for what
 * comes after that: progress must go on in the collective. */
static void far_receives_go_on_in_collectives_of_a_site(void)
{
    MPI_Comm site;
    int here, most = 0, least = 0, x = 1, bytes = 16 << 20;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &site);
    MPI_Comm_size(site, &here);
    MPI_Comm_free(&site);
    /* Sites of one host each, with two ranks. */
    MPI_Allreduce(&here, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&here, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (size != 4 || most != 2 || least != 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &site);
    char *data = calloc((size_t)bytes, 1);
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(data, bytes, MPI_CHAR, 2, 1, MPI_COMM_WORLD, &request);
        MPI_Barrier(site);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&x, 1, MPI_INT, 3, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(site);
    } else if (rank == 2) {
        MPI_Send(data, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        MPI_Send(&x, 1, MPI_INT, 3, 3, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&x, 1, MPI_INT, 2, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&x, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    }
    free(data);
    MPI_Comm_free(&site);
}

static void messages_to_nobody(void)
{
    int x = 3;
    MPI_Status status;
    MPI_Request request;
    MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && x == 3);
    /* MPICH 4.0 has no source in the status of this one. */
    MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(x == 3);
}

#if MPI_VERSION < 4
/* The world's library has them on communicators that span sites, whatever the MPI has. */
#pragma weak MPI_Isendrecv
#pragma weak MPI_Isendrecv_replace
int MPI_Isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm,
                  MPI_Request *);
int MPI_Isendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request *);
#endif

/* Both at once in one request, with each other rank in turn, beside other messages. */
static void both_in_one_request(void)
{
    MPI_Datatype type = type_with_holes();
    for (int shift = 0; shift < size; shift++) {
        int to = (rank + shift) % size, from = (rank + size - shift) % size, late[2] = {rank, -1};
        struct holes out = {'a', rank + 0.5, rank, 7}, in = {0}, same = out;
        MPI_Request requests[4];
        MPI_Status statuses[4];
        int count;
        MPI_Datatype passing;
        MPI_Type_dup(type, &passing);
        MPI_Irecv(&late[1], 1, MPI_INT, from, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Isendrecv(&out, 1, passing, to, 3, &in, 1, passing, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD,
                      &requests[1]);
        MPI_Isendrecv_replace(&same, 1, passing, to, 4, from, 4, MPI_COMM_WORLD, &requests[2]);
        MPI_Type_free(&passing);
        MPI_Isend(&late[0], 1, MPI_INT, to, 5, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, statuses);
        CHECK(late[1] == from && in.d == from + 0.5 && same.i == from);
        CHECK(statuses[1].MPI_SOURCE == from && statuses[1].MPI_TAG == 3 && statuses[2].MPI_SOURCE == from);
        MPI_Get_count(&statuses[1], type, &count);
        CHECK(count == 1);
        /* Nobody goes on before all have received from any source. */
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    blocking_pairs();
    all_to_all_of_every_size();
    large_ones_out_of_order();
    types_with_holes();
    a_buffer_that_is_replaced();
    both_in_one_request();
    persistent_requests();
    persistent_requests_outlive_their_type();
    matched_probes();
    buffered_sends();
    cancels();
    a_message_that_is_too_long_is_an_error();
    synchronous_sends();
    far_receives_go_on_in_collectives_of_a_site();
    messages_to_nobody();
    return end("messages");
}
