/* Communicators with processes of other jobs, windows and files, which do not work over sites yet: native
 * within a site. */
#define _GNU_SOURCE
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
REFUSE_MEETING(Win_allocate, comm,
               (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
               (size, disp_unit, info, comm, baseptr, win))
REFUSE_MEETING(Win_allocate_shared, comm,
               (MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win),
               (size, disp_unit, info, comm, baseptr, win))
REFUSE_MEETING(Win_create, comm,
               (void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win),
               (base, size, disp_unit, info, comm, win))
REFUSE_MEETING(Win_create_dynamic, comm, (MPI_Info info, MPI_Comm comm, MPI_Win *win), (info, comm, win))
