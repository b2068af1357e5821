/* QR factorisation of tall matrices, A = Q R, whose rows are spread over the ranks of a communicator: TSQR.
 * Each rank factorises its own rows; then a tree merges the small factors R, first within each site and then
 * over sites. Between sites one message goes up along each edge of the tree, and one comes back where
 * something is asked for besides R at rank 0. Sites are those of docs/topology.md.
 *
 *     causeway_tsqr_tree *tree;
 *     causeway_tsqr_open(MPI_COMM_WORLD, &tree);
 *     status = causeway_tsqr_factor(tree, CAUSEWAY_TSQR_DOUBLE, rows, 64, a, rows, r, 64,
 *                                   CAUSEWAY_TSQR_FORM_Q, NULL);
 *     causeway_tsqr_close(tree);
 *
 * The algorithm: Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and LU
 * factorizations", LAPACK Working Note 204, 2008. The tree over sites: Agullo, Coti, Dongarra, Herault,
 * Langou, "QR factorization of tall and skinny matrices in a grid computing environment", IPDPS 2010.
 *
 * Matrices are stored by columns, as LAPACK does: element (i, j) is at a[i + j * lda]. Lengths count
 * elements. causeway_tsqr.f90 and causeway_tsqr.py are the interfaces for Fortran and Python.
 * All ranks of the communicator call open, factor, multiply, project and close, in the same order.
 */
#ifndef CAUSEWAY_TSQR_H
#define CAUSEWAY_TSQR_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most columns that a matrix, or a block that Q is applied to, may have: lengths of messages and of
 * LAPACK are int. */
#define CAUSEWAY_TSQR_MOST_COLUMNS 4096

/* The complex types have real and imaginary parts in turn, as C and Fortran have them. */
enum causeway_tsqr_type {
    CAUSEWAY_TSQR_FLOAT,
    CAUSEWAY_TSQR_DOUBLE,
    CAUSEWAY_TSQR_COMPLEX_FLOAT,
    CAUSEWAY_TSQR_COMPLEX_DOUBLE,
};

enum causeway_tsqr_status {
    CAUSEWAY_TSQR_OK,
    CAUSEWAY_TSQR_ARGUMENT,   /* an argument is out of its range, or a pointer is missing */
    CAUSEWAY_TSQR_DISAGREE,   /* ranks said different types, columns or flags */
    CAUSEWAY_TSQR_FEW_ROWS,   /* all ranks together have fewer rows than columns */
    CAUSEWAY_TSQR_NOT_FINITE, /* the matrix has a NaN or an infinity */
    CAUSEWAY_TSQR_OVERFLOW,   /* the matrix is finite, but R is not */
    CAUSEWAY_TSQR_MEMORY,     /* there is no memory left */
    CAUSEWAY_TSQR_GROUPS,     /* CAUSEWAY_TSQR_GROUPS is no list of sizes that add up to all ranks */
    CAUSEWAY_TSQR_TREE,       /* CAUSEWAY_TSQR_TREE is neither links nor binomial */
};

enum causeway_tsqr_flags {
    CAUSEWAY_TSQR_R_EVERYWHERE = 1, /* R, or what project gives, at all ranks and not at rank 0 alone */
    CAUSEWAY_TSQR_FORM_Q = 2,       /* the rows of Q take the place of those of A */
    CAUSEWAY_TSQR_KEEP_Q = 4,       /* Q is kept as reflections, for multiply and project; not with FORM_Q */
    CAUSEWAY_TSQR_LET_PASS = 8,     /* NaN and infinity are no errors */
};

typedef struct causeway_tsqr_tree causeway_tsqr_tree;
typedef struct causeway_tsqr_q causeway_tsqr_q;

/* What this rank has sent since the tree was opened. Open itself duplicates the communicator; what the MPI
 * sends for this is not counted. */
struct causeway_tsqr_counts {
    int64_t messages_near, bytes_near; /* to ranks of its own site */
    int64_t messages_far, bytes_far;   /* to other sites */
};

/* Finds the sites and lays out the tree, whose root is rank 0. One tree serves any number of factorisations.
 * CAUSEWAY_TSQR_GROUPS=2,3 takes the place of the sites: ranks 0 and 1, then 2 to 4. It must be the same at
 * all ranks. Over 3 to 16 sites open measures the links between sites, which takes some round trips, and lays
 * out the tree that ends first. CAUSEWAY_TSQR_TREE=binomial leaves this out: then each run has the same tree,
 * so the same ranks give the same bits. Gives OK, GROUPS, TREE or MEMORY; *tree is NULL unless OK. */
int causeway_tsqr_open(MPI_Comm comm, causeway_tsqr_tree **tree);

/* The same, with a tree for matrices of about so many columns, which rank 0 says; open takes 64. The wider
 * they are, the longer merges take beside links. Gives ARGUMENT where columns is not 1 to
 * CAUSEWAY_TSQR_MOST_COLUMNS. Matrices of other widths are factorised as well. */
int causeway_tsqr_open_for(MPI_Comm comm, int columns, causeway_tsqr_tree **tree);

/* open_for for Fortran's communicator: MPI_COMM_WORLD of `use mpi`, or comm%mpi_val of `use mpi_f08`. */
int causeway_tsqr_open_fortran(MPI_Fint comm, int columns, causeway_tsqr_tree **tree);

/* Frees the tree. Every Q that was kept is freed before. NULL is nothing to do. */
void causeway_tsqr_close(causeway_tsqr_tree *tree);

/* The number of sites that have ranks in the tree; edges of the tree that join two sites are one fewer. */
int causeway_tsqr_sites(const causeway_tsqr_tree *tree);

/* A = Q R.
 *
 * rows     rows of A at this rank, 0 or more; they may differ, and be fewer than columns. Together they are
 * at least as many as columns. columns  columns of A, 1 to CAUSEWAY_TSQR_MOST_COLUMNS a        rows x
 * columns, lda >= rows and >= 1. Overwritten: by Q with FORM_Q, by reflections with KEEP_Q, else, and after
 * an error, by what is of no use. May be NULL where rows is 0. r        columns x columns, ldr >= columns: R
 * with zeros below its diagonal, which is real and not negative. Needed at rank 0, with R_EVERYWHERE at all
 * ranks; elsewhere it is not looked at. flags    the sum of causeway_tsqr_flags q        with KEEP_Q: the
 * handle. a and lda belong to it until causeway_tsqr_free. Else it may be NULL.
 *
 * All ranks give the same status, and causeway_tsqr_culprit names the rank that found the mistake. Two cases
 * are less: memory that ends on the way back is told at its rank and those below it in the tree; and with
 * LET_PASS and neither Q nor R_EVERYWHERE no answer goes back, so rank 0 knows of all mistakes, others of
 * those below them in the tree. With LET_PASS, Q and R of a matrix that is not finite are of no use, and
 * finite elsewhere only by chance. */
int causeway_tsqr_factor(causeway_tsqr_tree *tree, enum causeway_tsqr_type type, int64_t rows, int columns,
                         void *a, int64_t lda, void *r, int64_t ldr, unsigned flags, causeway_tsqr_q **q);

/* B = Q X. X is columns x k, at rank 0; B is rows x k, spread as A is. k is 1 to CAUSEWAY_TSQR_MOST_COLUMNS.
 * The types are those of A. A mistake of rank 0 is told at all ranks, one of another rank there and at those
 * that are below it in the tree. */
int causeway_tsqr_multiply(causeway_tsqr_q *q, int k, const void *x, int64_t ldx, void *b, int64_t ldb);

/* X = Q^H B, with shapes as in multiply; B stays as it is. X is at rank 0, with R_EVERYWHERE in flags at all
 * ranks. A mistake is told at its rank and at rank 0, with R_EVERYWHERE at all ranks. */
int causeway_tsqr_project(causeway_tsqr_q *q, int k, const void *b, int64_t ldb, void *x, int64_t ldx,
                          unsigned flags);

/* Frees a Q that was kept; a is the program's again. Not collective. NULL is nothing to do. */
void causeway_tsqr_free(causeway_tsqr_q *q);

/* A status as a sentence, in static memory. */
const char *causeway_tsqr_sentence(int status);

/* The rank that found the last mistake, or -1 where there was none. With DISAGREE it is the lower in the tree
 * of two ranks that said different things. */
int causeway_tsqr_culprit(const causeway_tsqr_tree *tree);

void causeway_tsqr_count(const causeway_tsqr_tree *tree, struct causeway_tsqr_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
