/* numbers: a number of each named type goes between all ranks, by messages and by an operation. Where the
 * sites' processors order bytes in unlike ways, each receiver has to get the same number. */
#include "world_test.h"

#include <wchar.h>

enum { MOST = 16, COUNT = 3, TAG = 1 };

static int kinds;

/* Whether every MPI has the type with so many bytes: some lack types of Fortran or C++. */
static int has_type(MPI_Datatype type, size_t bytes)
{
    int own = -1, all = 0;
    int is_there = type != MPI_DATATYPE_NULL && MPI_Type_size(type, &own) == MPI_SUCCESS && own == (int)bytes;
    MPI_Allreduce(&is_there, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}

/* All that each rank has comes to each, in the order of ranks, twice. */
static void exchange(MPI_Datatype type, size_t extent, const void *out, void *by_messages, void *by_operation)
{
    MPI_Request requests[2 * MOST];
    for (int other = 0; other < size; other++) {
        char *place = (char *)by_messages + (size_t)other * COUNT * extent;
        MPI_Irecv(place, COUNT, type, other, TAG, MPI_COMM_WORLD, &requests[2 * other]);
        MPI_Isend(out, COUNT, type, other, TAG, MPI_COMM_WORLD, &requests[2 * other + 1]);
    }
    for (int i = 0; i < 2 * size; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Allgather(out, COUNT, type, by_operation, COUNT, type, MPI_COMM_WORLD);
    kinds++;
}

/* The i-th number of a rank: with its bytes turned round it is another one. */
#define VALUE(ctype, from, i) ((ctype)(3 + 7 * (i) + (from)))

#define ONE(constant, ctype)                                     \
    if (has_type(constant, sizeof(ctype))) {                     \
        ctype out[COUNT], in[2][MOST * COUNT];                   \
        for (int i = 0; i < COUNT; i++)                          \
            out[i] = VALUE(ctype, rank, i);                      \
        exchange(constant, sizeof(ctype), out, in[0], in[1]);    \
        for (int i = 0; i < 2 * size * COUNT; i++) {             \
            int at = i / 2;                                      \
            ctype wanted = VALUE(ctype, at / COUNT, at % COUNT); \
            CHECK(in[i % 2][at] == wanted && #constant);         \
        }                                                        \
    }

#define TWO(constant, first, second)                                                  \
    if (has_type(constant, sizeof(first) + sizeof(second))) {                         \
        struct two {                                                                  \
            first a;                                                                  \
            second b;                                                                 \
        } out[COUNT], in[2][MOST * COUNT];                                            \
        for (int i = 0; i < COUNT; i++)                                               \
            out[i] = (struct two){VALUE(first, rank, i), VALUE(second, rank, i + 1)}; \
        exchange(constant, sizeof(struct two), out, in[0], in[1]);                    \
        for (int i = 0; i < 2 * size * COUNT; i++) {                                  \
            int from = i / 2 / COUNT, of = i / 2 % COUNT;                             \
            const struct two *is = &in[i % 2][i / 2];                                 \
            CHECK(is->a == VALUE(first, from, of) && #constant);                      \
            CHECK(is->b == VALUE(second, from, of + 1) && #constant);                 \
        }                                                                             \
    }

static void of_c(void)
{
    ONE(MPI_SIGNED_CHAR, signed char)
    ONE(MPI_SHORT, short)
    ONE(MPI_UNSIGNED_SHORT, unsigned short)
    ONE(MPI_INT, int)
    ONE(MPI_UNSIGNED, unsigned)
    ONE(MPI_LONG, long)
    ONE(MPI_UNSIGNED_LONG, unsigned long)
    ONE(MPI_LONG_LONG, long long)
    ONE(MPI_UNSIGNED_LONG_LONG, unsigned long long)
    ONE(MPI_INT16_T, int16_t)
    ONE(MPI_INT32_T, int32_t)
    ONE(MPI_INT64_T, int64_t)
    ONE(MPI_UINT16_T, uint16_t)
    ONE(MPI_UINT32_T, uint32_t)
    ONE(MPI_UINT64_T, uint64_t)
    ONE(MPI_AINT, MPI_Aint)
    ONE(MPI_OFFSET, MPI_Offset)
    ONE(MPI_COUNT, MPI_Count)
    ONE(MPI_WCHAR, wchar_t)
    ONE(MPI_FLOAT, float)
    ONE(MPI_DOUBLE, double)
    ONE(MPI_LONG_DOUBLE, long double)
}

static void of_two(void)
{
    TWO(MPI_C_FLOAT_COMPLEX, float, float)
    TWO(MPI_C_DOUBLE_COMPLEX, double, double)
    TWO(MPI_C_LONG_DOUBLE_COMPLEX, long double, long double)
    TWO(MPI_CXX_FLOAT_COMPLEX, float, float)
    TWO(MPI_CXX_DOUBLE_COMPLEX, double, double)
    TWO(MPI_CXX_LONG_DOUBLE_COMPLEX, long double, long double)
    TWO(MPI_FLOAT_INT, float, int)
    TWO(MPI_DOUBLE_INT, double, int)
    TWO(MPI_LONG_INT, long, int)
    TWO(MPI_SHORT_INT, short, int)
    TWO(MPI_2INT, int, int)
    TWO(MPI_LONG_DOUBLE_INT, long double, int)
}

static void of_fortran(void)
{
    ONE(MPI_INTEGER, int)
    ONE(MPI_INTEGER2, int16_t)
    ONE(MPI_INTEGER8, int64_t)
    ONE(MPI_LOGICAL, int)
    ONE(MPI_REAL, float)
    ONE(MPI_REAL8, double)
    ONE(MPI_DOUBLE_PRECISION, double)
    TWO(MPI_COMPLEX, float, float)
    TWO(MPI_COMPLEX8, float, float)
    TWO(MPI_COMPLEX16, double, double)
    TWO(MPI_DOUBLE_COMPLEX, double, double)
    TWO(MPI_2INTEGER, int, int)
    TWO(MPI_2REAL, float, float)
    TWO(MPI_2DOUBLE_PRECISION, double, double)
}

/* Types that Fortran asks for by their digits. */
static void of_digits(void)
{
    MPI_Datatype whole = MPI_DATATYPE_NULL, real = MPI_DATATYPE_NULL, complex = MPI_DATATYPE_NULL;
    MPI_Type_create_f90_integer(18, &whole);
    MPI_Type_create_f90_real(15, 300, &real);
    MPI_Type_create_f90_complex(6, 30, &complex);
    ONE(whole, int64_t)
    ONE(real, double)
    TWO(complex, float, float)
}

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    of_c();
    of_two();
    of_fortran();
    of_digits();
    CHECK(kinds >= 30);
    if (rank == 0)
        printf("numbers: %d types\n", kinds);
    return end("numbers");
}
