! Who is where, gathered at rank 0 and checked: Fortran 2008, use mpi_f08. Exit status 1 if an answer is wrong.
program hello
   use mpi_f08
   implicit none
   integer :: rank, ranks, length, i
   integer, allocatable :: everyone(:)
   character(len=MPI_MAX_PROCESSOR_NAME) :: node
   type(MPI_Comm) :: world

   call MPI_Init()
   world = MPI_COMM_WORLD
   call MPI_Comm_rank(world, rank)
   call MPI_Comm_size(world, ranks)
   call MPI_Get_processor_name(node, length)
   print '(A,I0,A,I0,A,A)', 'hello from rank ', rank, ' of ', ranks, ' on ', node(1:length)
   allocate (everyone(ranks))
   call MPI_Gather(rank*rank, 1, MPI_INTEGER, everyone, 1, MPI_INTEGER, 0, world)
   if (rank == 0) then
      do i = 1, ranks
         if (everyone(i) /= (i - 1)**2) stop 1
      end do
      print '(A)', 'hello_f08: all right'
   end if
   call MPI_Finalize()
end program
