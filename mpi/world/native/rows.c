#include "world/native/rows.h"

enum { ELEMENTS = 1 << 30 };

static struct {
    int (*contiguous)(int, MPI_Datatype, MPI_Datatype *);
    int (*structure)(int, const int *, const MPI_Aint *, const MPI_Datatype *, MPI_Datatype *);
    int (*commit)(MPI_Datatype *);
} make;

static int find(void)
{
    if (!make.commit) {
        make.contiguous = (__typeof__(make.contiguous))mpi_calls_find("Type_contiguous");
        make.structure = (__typeof__(make.structure))mpi_calls_find("Type_create_struct");
        make.commit = (__typeof__(make.commit))mpi_calls_find("Type_commit");
    }
    return make.contiguous && make.structure && make.commit;
}

/* Makes a type of `many` blocks of ELEMENTS elements. */
static int make_blocks(int many, MPI_Datatype type, MPI_Datatype *blocks)
{
    MPI_Datatype block;
    int status = make.contiguous(ELEMENTS, type, &block);
    if (status != MPI_SUCCESS)
        return status;
    status = make.contiguous(many, block, blocks);
    real.Type_free(&block);
    return status;
}

int row_make(MPI_Count count, MPI_Datatype type, MPI_Datatype *row)
{
    MPI_Aint low, extent;
    if (!find() || count / ELEMENTS > ELEMENTS)
        return MPI_ERR_COUNT;
    int many = (int)(count / ELEMENTS), status = real.Type_get_extent(type, &low, &extent);
    MPI_Datatype parts[2] = {handle.datatype_null, handle.datatype_null};
    MPI_Aint displs[2] = {0, (MPI_Aint)many * ELEMENTS * extent};
    TRY(status, make_blocks(many, type, &parts[0]));
    TRY(status, make.contiguous((int)(count % ELEMENTS), type, &parts[1]));
    TRY(status, make.structure(2, (const int[]){1, 1}, displs, parts, row));
    TRY(status, make.commit(row));
    for (int i = 0; i < 2; i++)
        if (parts[i] != handle.datatype_null)
            real.Type_free(&parts[i]);
    return status;
}
