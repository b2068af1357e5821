! Tells the site of every rank, from the info object and from the attributes of MPI_COMM_WORLD. Attributes hold addresses that C has put
! there: they are read as integers of MPI_ADDRESS_KIND and become pointers. Names as in causeway_mpi.h; docs/topology.md explains the calls.
program topology
   use mpi
   use, intrinsic :: iso_c_binding
   implicit none
   integer, parameter :: site_level = 2   ! levels are counted from 1 here
   character(len=63) :: site, keyval
   integer :: rank, ranks, info, key, part, members, ierror, i
   integer(MPI_ADDRESS_KIND) :: address
   logical :: told, is_there
   integer(c_int), pointer :: depths(:), colors_of_rank(:)
   type(c_ptr), pointer :: colors(:)
   integer, allocatable :: site_of(:)

   call MPI_Init(ierror)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
   allocate (site_of(ranks))
   site_of = 0
   call MPI_Comm_get_info(MPI_COMM_WORLD, info, ierror)
   call MPI_Info_get(info, 'causeway:site', 63, site, told, ierror)
   if (.not. told) site = 'here'
   call MPI_Info_get(info, 'causeway:depths_keyval', 63, keyval, told, ierror)
   if (told) then
      read (keyval, *) key
      call MPI_Comm_get_attr(MPI_COMM_WORLD, key, address, is_there, ierror)
      if (.not. is_there) stop 1
      call c_f_pointer(transfer(address, c_null_ptr), depths, [ranks])
   end if
   call MPI_Info_get(info, 'causeway:colors_keyval', 63, keyval, told, ierror)
   if (told) then
      read (keyval, *) key
      call MPI_Comm_get_attr(MPI_COMM_WORLD, key, address, is_there, ierror)
      if (.not. is_there) stop 1
      call c_f_pointer(transfer(address, c_null_ptr), colors, [ranks])
      do i = 1, ranks
         call c_f_pointer(colors(i), colors_of_rank, [depths(i)])
         site_of(i) = colors_of_rank(site_level)
      end do
   end if
   call MPI_Info_free(info, ierror)
   print '(A,I0,A,A,A,I0)', 'rank ', rank, ' is at site ', trim(site), ', number ', site_of(rank + 1)
   call MPI_Comm_split(MPI_COMM_WORLD, site_of(rank + 1), rank, part, ierror)
   call MPI_Comm_size(part, members, ierror)
   if (members /= count(site_of == site_of(rank + 1))) stop 1
   call MPI_Comm_free(part, ierror)
   call MPI_Barrier(MPI_COMM_WORLD, ierror)
   if (rank == 0) print '(A)', 'topology_fortran: all right'
   call MPI_Finalize(ierror)
end program
