/* Communicators with processes of other jobs, windows and files, which do not work over sites yet. Within a
 * site they are native. */
#define _GNU_SOURCE
#include "common/binding/signatures.h"
#include "world/calls/refuse.h"

REFUSE(Comm_accept, comm, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
       (port_name, info, root, comm, newcomm))
REFUSE(Comm_connect, comm, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
       (port_name, info, root, comm, newcomm))
REFUSE_MEETING(Comm_spawn, comm,
               (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                MPI_Comm *intercomm, int array_of_errcodes[]),
               (command, argv, maxprocs, info, root, comm, intercomm, array_of_errcodes))
REFUSE_MEETING(Comm_spawn_multiple, comm,
               (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
                const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm,
                int array_of_errcodes[]),
               (count, array_of_commands, array_of_argv, array_of_maxprocs, array_of_info, root, comm,
                intercomm, array_of_errcodes))
REFUSE_MEETING(File_open, comm, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
               (comm, filename, amode, info, fh))
REFUSE_MEETING(Win_allocate, comm, (PARAMETERS(Win_allocate)), (ARGUMENTS(Win_allocate)))
REFUSE_MEETING(Win_allocate_shared, comm, (PARAMETERS(Win_allocate_shared)), (ARGUMENTS(Win_allocate_shared)))
REFUSE_MEETING(Win_create, comm, (PARAMETERS(Win_create)), (ARGUMENTS(Win_create)))
REFUSE_MEETING(Win_create_dynamic, comm, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
