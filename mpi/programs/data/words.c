#include "words.h"

#include "left_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number as it lies in memory. */
#define NUMBER(type) {.at = 0, .bytes = sizeof(type), .carried = sizeof(type)}
#define NUMBER_AT(type, place) {.at = (place), .bytes = sizeof(type), .carried = sizeof(type)}
/* An x87 number has 80 bits; the compiler decides how many bytes it occupies. */
#define LONG_DOUBLE_AT(place)                                                                  \
    {.at = (place),                                                                            \
     .bytes = sizeof(long double) == 16 && __LDBL_MANT_DIG__ == 64 ? 10 : sizeof(long double), \
     .carried = sizeof(long double)}

struct two_floats {
    float a, b;
};
struct two_doubles {
    double a, b;
};
struct two_ints {
    int a, b;
};
struct double_int {
    double a;
    int b;
};
struct long_int {
    long a;
    int b;
};
struct short_int {
    short a;
    int b;
};
struct float_int {
    float a;
    int b;
};
/* Fortran's REAL(16). Compilers have __float128 only if long double is a different type. */
#if __LDBL_MANT_DIG__ == 113
typedef long double quadruple;
#else
typedef __float128 quadruple;
#endif
struct two_quadruples {
    quadruple a, b;
};
struct long_double_int {
    long double a;
    int b;
};

struct element {
    const char *name;
    MPI_Datatype type;
    ptrdiff_t extent;
    int alignment;
    int count;
    struct piece pieces[2];
};

#define MOST_ELEMENTS 40
static struct element elements[MOST_ELEMENTS];
static int element_count;

int words_elements(void) { return element_count; }

int words_count(void) { return is_left_out("mixed") ? element_count : 2 * element_count; }

static void add(int rank, struct element element)
{
    int size = -1, wanted = 0;
    MPI_Aint lower = -1, extent = -1;
    for (int i = 0; i < element.count; i++)
        wanted += element.pieces[i].carried;
    if (is_left_out(element.name))
        return;
    if (element.type == MPI_DATATYPE_NULL || MPI_Type_size(element.type, &size) != MPI_SUCCESS ||
        MPI_Type_get_extent(element.type, &lower, &extent) != MPI_SUCCESS || size != wanted || lower != 0 ||
        extent != element.extent) {
        if (rank == 0)
            printf("data: this MPI has no %s of %d bytes: left out\n", element.name, wanted);
        return;
    }
    elements[element_count++] = element;
}

#define ONE(constant, ctype) \
    add(rank, (struct element){#constant, constant, sizeof(ctype), _Alignof(ctype), 1, {NUMBER(ctype)}})
#define TWO(constant, ctype, first, second)     \
    add(rank, (struct element){#constant,       \
                               constant,        \
                               sizeof(ctype),   \
                               _Alignof(ctype), \
                               2,               \
                               {NUMBER_AT(first, 0), NUMBER_AT(second, offsetof(ctype, b))}})

void words_begin(int rank)
{
    /* The MPI must report a type that it lacks, not end the program. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    ONE(MPI_CHAR, char);
    ONE(MPI_SHORT, short);
    ONE(MPI_INT, int);
    ONE(MPI_FLOAT, float);
    ONE(MPI_LONG, long);
    ONE(MPI_DOUBLE, double);
    TWO(MPI_C_FLOAT_COMPLEX, struct two_floats, float, float);
    TWO(MPI_C_DOUBLE_COMPLEX, struct two_doubles, double, double);
    const int wide = _Alignof(long double);
    add(rank, (struct element){
                  "MPI_LONG_DOUBLE", MPI_LONG_DOUBLE, sizeof(long double), wide, 1, {LONG_DOUBLE_AT(0)}});
    add(rank, (struct element){"MPI_C_LONG_DOUBLE_COMPLEX",
                               MPI_C_LONG_DOUBLE_COMPLEX,
                               2 * sizeof(long double),
                               wide,
                               2,
                               {LONG_DOUBLE_AT(0), LONG_DOUBLE_AT(sizeof(long double))}});
    TWO(MPI_2INT, struct two_ints, int, int);
    TWO(MPI_SHORT_INT, struct short_int, short, int);
    TWO(MPI_FLOAT_INT, struct float_int, float, int);
    TWO(MPI_DOUBLE_INT, struct double_int, double, int);
    TWO(MPI_LONG_INT, struct long_int, long, int);
    add(rank, (struct element){"MPI_LONG_DOUBLE_INT",
                               MPI_LONG_DOUBLE_INT,
                               sizeof(struct long_double_int),
                               wide,
                               2,
                               {LONG_DOUBLE_AT(0), NUMBER_AT(int, offsetof(struct long_double_int, b))}});
    ONE(MPI_REAL, float);
    ONE(MPI_DOUBLE_PRECISION, double);
    TWO(MPI_DOUBLE_COMPLEX, struct two_doubles, double, double);
#ifdef MPI_REAL16
    ONE(MPI_REAL16, quadruple);
#endif
#ifdef MPI_COMPLEX32
    TWO(MPI_COMPLEX32, struct two_quadruples, quadruple, quadruple);
#endif
}

/* Chooses the elements of a word of several. They depend only on the word's number, so they are the same at
 * every end. */
static int chosen(int word, int which[4])
{
    struct random random = {(uint64_t)word * 77};
    int count = 2 + random_below(&random, 3);
    for (int i = 0; i < count; i++)
        which[i] = random_below(&random, element_count);
    return count;
}

static struct layout one(const struct element *element)
{
    struct layout layout = layout_begin(element->count, element->name);
    memcpy(layout.pieces, element->pieces, (size_t)element->count * sizeof *element->pieces);
    layout.type = element->type;
    layout.is_ours = 0;
    layout.count = element->count;
    layout.words = 1;
    layout.extent = element->extent;
    layout.alignment = element->alignment;
    return layout;
}

struct layout words_make(int word, struct random *random)
{
    if (word < element_count)
        return one(&elements[word]);
    int which[4], lengths[4], count = chosen(word, which);
    MPI_Datatype types[4], packed;
    MPI_Aint displs[4];
    char name[sizeof((struct layout *)0)->name];
    snprintf(name, sizeof name, "struct of %s and %d more", elements[which[0]].name, count - 1);
    struct layout made = layout_begin(2 * count, name);
    /* Each element has a slot of 64 bytes. Every other time the slots are in reverse order. */
    int is_backwards = random_below(random, 2);
    for (int i = 0; i < count; i++) {
        struct layout element = one(&elements[which[i]]);
        lengths[i] = 1;
        types[i] = element.type;
        displs[i] =
            64 * (is_backwards ? count - 1 - i : i) + (MPI_Aint)element.alignment * random_below(random, 2);
        layout_place(&made, &element, displs[i]);
        layout_free(&element);
    }
    made.words = 1;
    made.lower = 0;
    made.extent = 64 * count;
    made.alignment = 16;
    MPI_Type_create_struct(count, lengths, displs, types, &packed);
    MPI_Type_create_resized(packed, made.lower, made.extent, &made.type);
    MPI_Type_free(&packed);
    MPI_Type_commit(&made.type);
    return made;
}

int words_bytes(int word)
{
    int which[4], count = 1, bytes = 0;
    if (word < element_count)
        which[0] = word;
    else
        count = chosen(word, which);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < elements[which[i]].count; j++)
            bytes += elements[which[i]].pieces[j].carried;
    return bytes;
}
