/* Calls of MPI 4 that make communicators from groups alone, or the group of all processes of a session: they
 * would contain only the processes of this site. */
#define _GNU_SOURCE
#include "world/calls/refuse.h"
#include "world/handles/groups.h"

#include <string.h>

#if MPI_VERSION >= 4

EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler errors,
                                      MPI_Comm *made)
{
    static int is_told;
    if (group_find(group))
        return refuse(handle.comm_world, "MPI_Comm_create_from_group", &is_told);
    OTHER("Comm_create_from_group", (MPI_Group, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *), group,
          tag, info, errors, made);
}
BOTH(Comm_create_from_group);

EXPORT int MPI_Intercomm_create_from_groups(MPI_Group local, int local_leader, MPI_Group remote,
                                            int remote_leader, const char *tag, MPI_Info info,
                                            MPI_Errhandler errors, MPI_Comm *made)
{
    static int is_told;
    if (group_find(local) || group_find(remote))
        return refuse(handle.comm_world, "MPI_Intercomm_create_from_groups", &is_told);
    OTHER("Intercomm_create_from_groups",
          (MPI_Group, int, MPI_Group, int, const char *, MPI_Info, MPI_Errhandler, MPI_Comm *), local,
          local_leader, remote, remote_leader, tag, info, errors, made);
}
BOTH(Intercomm_create_from_groups);

EXPORT int MPI_Group_from_session_pset(MPI_Session session, const char *name, MPI_Group *group)
{
    static int is_told;
    if (ours.is_on && name && strcasecmp(name, "mpi://WORLD") == 0)
        return refuse(handle.comm_world, "MPI_Group_from_session_pset of mpi://WORLD", &is_told);
    OTHER("Group_from_session_pset", (MPI_Session, const char *, MPI_Group *), session, name, group);
}
BOTH(Group_from_session_pset);

#endif
