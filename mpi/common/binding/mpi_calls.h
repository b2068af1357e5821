/* The functions of the MPI below, as pointers that are found at run time. This library is preloaded into
 * programs that load their MPI later, and into launchers that have none, so it must need no symbol of any
 * MPI. */
#ifndef CAUSEWAY_MPI_CALLS_H
#define CAUSEWAY_MPI_CALLS_H

#ifdef CAUSEWAY_STANDARD_ABI
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "Causeway has no libraries for 32 bits");

/* The standard binary interface omits functions that MPI 4 has replaced, and Open MPI 4 lacks their
 * replacements. */
#ifdef CAUSEWAY_STANDARD_ABI
#define CALL_INFO(CALL) CALL(Info_get_string)
#else
#define CALL_INFO(CALL) CALL(Info_get)
#endif

/* Every MPI since 3.0 has these. clang-format would treat the list as one expression. */
/* clang-format off */
#define MPI_CALLS(CALL) \
    CALL_INFO(CALL) \
    CALL(Abort) CALL(Add_error_class) CALL(Add_error_code) CALL(Add_error_string) CALL(Allgather) \
    CALL(Allgatherv) CALL(Allreduce) CALL(Alltoall) CALL(Alltoallv) CALL(Alltoallw) CALL(Barrier) \
    CALL(Bcast) CALL(Cancel) CALL(Comm_call_errhandler) CALL(Comm_compare) CALL(Comm_create) \
    CALL(Comm_create_errhandler) CALL(Comm_create_group) CALL(Comm_create_keyval) CALL(Comm_delete_attr) \
    CALL(Comm_disconnect) CALL(Comm_dup) CALL(Comm_free) CALL(Comm_free_keyval) CALL(Comm_get_attr) \
    CALL(Comm_get_errhandler) CALL(Comm_get_info) CALL(Comm_group) CALL(Comm_rank) CALL(Comm_set_attr) \
    CALL(Comm_set_errhandler) CALL(Comm_size) CALL(Comm_split) CALL(Comm_split_type) CALL(Comm_test_inter) \
    CALL(Errhandler_free) CALL(Error_class) CALL(Exscan) CALL(Finalize) CALL(Gather) CALL(Gatherv) \
    CALL(Get_count) CALL(Get_elements_x) CALL(Get_library_version) CALL(Grequest_complete) \
    CALL(Grequest_start) CALL(Group_compare) CALL(Group_difference) CALL(Group_excl) CALL(Group_free) \
    CALL(Group_incl) CALL(Group_intersection) CALL(Group_range_excl) CALL(Group_range_incl) \
    CALL(Group_rank) CALL(Group_size) CALL(Group_translate_ranks) CALL(Group_union) CALL(Iallgather) \
    CALL(Iallgatherv) CALL(Iallreduce) CALL(Ialltoall) CALL(Ialltoallv) CALL(Ialltoallw) CALL(Ibarrier) \
    CALL(Ibcast) CALL(Iexscan) CALL(Igather) CALL(Igatherv) CALL(Improbe) CALL(Imrecv) CALL(Info_set) \
    CALL(Init) CALL(Init_thread) CALL(Iprobe) CALL(Irecv) CALL(Ireduce) CALL(Ireduce_scatter) \
    CALL(Ireduce_scatter_block) CALL(Irsend) CALL(Iscan) CALL(Iscatter) CALL(Iscatterv) CALL(Isend) \
    CALL(Issend) CALL(Op_commutative) CALL(Op_free) CALL(Pack) CALL(Probe) CALL(Query_thread) CALL(Recv) \
    CALL(Recv_init) CALL(Reduce) CALL(Reduce_local) CALL(Reduce_scatter) CALL(Reduce_scatter_block) \
    CALL(Request_free) CALL(Request_get_status) CALL(Rsend) CALL(Scan) CALL(Scatter) CALL(Scatterv) \
    CALL(Send) CALL(Sendrecv) CALL(Ssend) CALL(Start) CALL(Startall) CALL(Status_set_cancelled) \
    CALL(Status_set_elements_x) CALL(Test) CALL(Test_cancelled) CALL(Testall) CALL(Testany) CALL(Testsome) \
    CALL(Type_dup) CALL(Type_free) CALL(Type_get_contents) CALL(Type_get_envelope) CALL(Type_get_extent) \
    CALL(Type_get_true_extent) CALL(Type_size_x) CALL(Unpack) CALL(Wait) CALL(Waitall) CALL(Waitany) \
    CALL(Waitsome) CALL(Win_allocate) CALL(Win_create) CALL(Win_create_dynamic)
/* clang-format on */

struct mpi_calls {
#define CALL(name) __typeof__(PMPI_##name) *name;
    MPI_CALLS(CALL)
#undef CALL
};

/* Named types of C that every MPI has, with Open MPI's symbols. */
/* clang-format off */
#define MPI_TYPES(TYPE) \
    TYPE(CHAR, char) TYPE(SHORT, short) TYPE(INT, int) TYPE(LONG, long) TYPE(LONG_LONG_INT, long_long_int) \
    TYPE(FLOAT, float) TYPE(DOUBLE, double) TYPE(LONG_DOUBLE, long_double) TYPE(WCHAR, wchar) \
    TYPE(FLOAT_INT, float_int) TYPE(DOUBLE_INT, double_int) TYPE(LONG_INT, long_int) TYPE(SHORT_INT, short_int) \
    TYPE(2INT, 2int) TYPE(LONG_DOUBLE_INT, longdbl_int) \
    TYPE(C_LONG_DOUBLE_COMPLEX, c_long_double_complex)

enum {
#define TYPE(name, symbol) TYPE_##name,
    MPI_TYPES(TYPE)
#undef TYPE
    TYPE_COUNT
};

/* Named types of two numbers of the same kind, in addition to those above. An MPI may lack some of them. */
#define MPI_PAIRS(TYPE) \
    TYPE(C_FLOAT_COMPLEX, c_float_complex) TYPE(C_DOUBLE_COMPLEX, c_double_complex) \
    TYPE(CXX_FLOAT_COMPLEX, cxx_cplex) TYPE(CXX_DOUBLE_COMPLEX, cxx_dblcplex) \
    TYPE(CXX_LONG_DOUBLE_COMPLEX, cxx_ldblcplex) \
    TYPE(COMPLEX, cplex) TYPE(DOUBLE_COMPLEX, dblcplex) TYPE(COMPLEX8, complex8) TYPE(COMPLEX16, complex16) \
    TYPE(COMPLEX32, complex32) TYPE(2REAL, 2real) TYPE(2DOUBLE_PRECISION, 2dblprec) TYPE(2INTEGER, 2integer)

enum {
#define TYPE(name, symbol) PAIR_##name,
    MPI_PAIRS(TYPE)
#undef TYPE
    PAIR_COUNT
};
/* clang-format on */

/* Predefined handles. Open MPI's are the addresses of objects, which are symbols, too. */
struct mpi_handles {
    MPI_Comm comm_world, comm_self, comm_null;
    MPI_Datatype byte, datatype_null;
    MPI_Request request_null;
    MPI_Errhandler errors_return, errors_are_fatal;
    MPI_Op op_null, bitwise_or, most, least;
    MPI_Info info_null;
    MPI_Group group_null, group_empty;
    MPI_Datatype types[TYPE_COUNT];
    /* For a type that the MPI lacks: MPI_DATATYPE_NULL, or a handle that refers to no type. */
    MPI_Datatype pairs[PAIR_COUNT];
};

extern struct mpi_calls real;
extern struct mpi_handles handle;

/* Finds all functions, once. Returns false if some are missing: those that a library with another interface
 * lacks, or all if there is no MPI. */
int mpi_calls_load(void);

/* Finds PMPI_name, or else PMPIX_name, for a function that not every MPI has; NULL if neither exists. */
void *mpi_calls_find(const char *name);

/* Finds the symbol that the program itself would find: that of the first library which has it. RTLD_DEFAULT
 * would look in the caller's own library first if that is linked with -Bsymbolic, as the world libraries
 * are. */
void *mpi_calls_first(const char *name);

/* Finds a variable of the MPI, even if the program has loaded the MPI with local scope, as Python does. */
void *mpi_calls_object(const char *name);

/* Finds a symbol that the world library exports, which makes one world of sites with MPIs of their own
 * (mpi/world); NULL if it is not loaded. */
void *mpi_calls_of_world(const char *name);
/* Whether the world library stands in for the MPI in this job. */
int mpi_calls_are_worlds(void);

/* Whether the MPI of this process has the binary interface that this library was built for. If not, the MPI
 * is called only with the program's own arguments. */
int mpi_calls_fit(void);

/* Makes `call` only if nothing has failed, and keeps the first error. */
#define TRY(status, call) ((status) == MPI_SUCCESS ? ((status) = (call)) : (status))

#endif
