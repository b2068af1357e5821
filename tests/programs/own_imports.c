/* own_imports: a program that uses within its site what does not work over sites. The start of a world of
 * several sites tells it by name, and the program goes on. */
#include <mpi.h>
#include <stdio.h>

int main(int count, char **words)
{
    int rank, ranks, memory = 0;
    MPI_Comm within;
    MPI_Win window;
    MPI_File file;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    /* A site has one host here. Open MPI makes no windows of one process. */
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &within);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, within, &window);
    MPI_Win_free(&window);
    MPI_Comm_free(&within);
    int opened = MPI_File_open(MPI_COMM_SELF, words[0], MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    if (opened == MPI_SUCCESS)
        MPI_File_close(&file);
    int wrong = opened != MPI_SUCCESS, all;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    if (rank == 0)
        printf("own_imports: %d ranks, %s\n", ranks, all ? "wrong" : "all right");
    MPI_Finalize();
    return all;
}
