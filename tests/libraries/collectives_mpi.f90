! Every collective that the library improves, its values, and that the library sent something between sites for it: Fortran 90, use mpi.
! Exit status 1 if one is wrong.
program collectives_mpi
   use mpi
   implicit none
   integer :: types(64)
   integer, parameter :: most = 64, operations = 17
   character(len=*), parameter :: names(operations) = [character(len=20) :: 'barrier', 'bcast', 'reduce', 'allreduce', &
      'reduce_scatter', 'reduce_scatter_block', 'gather', 'gatherv', 'scatter', 'scatterv', 'allgather', 'allgatherv', &
      'alltoall', 'alltoallv', 'alltoallw', 'scan', 'exscan']
   integer :: rank, ranks, last, sum, i, error, any_wrong
   integer :: out(most), in(most), ones(most), places(most), bytes(most), expected(most)
   integer :: before, now, wrong, sent(operations), total(operations)

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   if (ranks > most) stop 1
   last = ranks - 1
   sum = ranks*(ranks - 1)/2
   ones = 1
   types = MPI_INTEGER
   do i = 1, most
      places(i) = i - 1
      bytes(i) = 4*(i - 1)
   end do
   wrong = 0
   sent = 0
   ! What a communicator is known by is agreed on in its first operation.
   call MPI_Barrier(MPI_COMM_WORLD, error)
   call crossed(before)

   call MPI_Barrier(MPI_COMM_WORLD, error)
   call seen(1)

   in(1) = rank
   call MPI_Bcast(in, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   call check(2, .true., 1, [last])

   out(1) = rank
   call MPI_Reduce(out, in, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
   call check(3, rank == 0, 1, [sum])
   in(1) = rank
   if (rank == last) then
      call MPI_Reduce(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, last, MPI_COMM_WORLD, error)
   else
      call MPI_Reduce(in, out, 1, MPI_INTEGER, MPI_SUM, last, MPI_COMM_WORLD, error)
   end if
   call check(3, rank == last, 1, [sum])

   out(1) = rank
   call MPI_Allreduce(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(4, .true., 1, [sum])
   in(1) = rank
   call MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(4, .true., 1, [sum])

   out = rank + places
   call MPI_Reduce_scatter(out, in, ones, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(5, .true., 1, [sum + ranks*rank])
   in = rank + places
   call MPI_Reduce_scatter(MPI_IN_PLACE, in, ones, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(5, .true., 1, [sum + ranks*rank])

   call MPI_Reduce_scatter_block(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(6, .true., 1, [sum + ranks*rank])
   in = rank + places
   call MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(6, .true., 1, [sum + ranks*rank])

   out(1) = rank
   in = rank
   if (rank == last) then
      call MPI_Gather(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   else
      call MPI_Gather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   end if
   call check(7, rank == last, ranks, places)
   in = -1
   call MPI_Gather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   call check(7, rank == 0, ranks, places)

   in = rank
   if (rank == last) then
      call MPI_Gatherv(MPI_IN_PLACE, 1, MPI_INTEGER, in, ones, places, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   else
      call MPI_Gatherv(out, 1, MPI_INTEGER, in, ones, places, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   end if
   call check(8, rank == last, ranks, places)

   in(1) = rank
   if (rank == last) then
      call MPI_Scatter(places, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   else
      call MPI_Scatter(places, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   end if
   call check(9, .true., 1, [rank])
   in(1) = -1
   call MPI_Scatter(places, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   call check(9, .true., 1, [rank])

   in(1) = rank
   if (rank == last) then
      call MPI_Scatterv(bytes, ones, places, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
      in(1) = bytes(ranks)
   else
      call MPI_Scatterv(bytes, ones, places, MPI_INTEGER, in, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
   end if
   call check(10, .true., 1, [4*rank])

   in = -1
   call MPI_Allgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(11, .true., ranks, places)
   in = rank
   call MPI_Allgather(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(11, .true., ranks, places)

   in = -1
   call MPI_Allgatherv(out, 1, MPI_INTEGER, in, ones, places, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(12, .true., ranks, places)
   in = rank
   call MPI_Allgatherv(MPI_IN_PLACE, 1, MPI_INTEGER, in, ones, places, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(12, .true., ranks, places)

   out = 100*rank + places
   expected = 100*places + rank
   in = -1
   call MPI_Alltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(13, .true., ranks, expected)
   in = out
   call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(13, .true., ranks, expected)

   in = -1
   call MPI_Alltoallv(out, ones, places, MPI_INTEGER, in, ones, places, MPI_INTEGER, MPI_COMM_WORLD, error)
   call check(14, .true., ranks, expected)

   in = -1
   call MPI_Alltoallw(out, ones, bytes, types, in, ones, bytes, types, MPI_COMM_WORLD, error)
   call check(15, .true., ranks, expected)

   out(1) = rank
   call MPI_Scan(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(16, .true., 1, [rank*(rank + 1)/2])
   in(1) = rank
   call MPI_Scan(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(16, .true., 1, [rank*(rank + 1)/2])

   call MPI_Exscan(out, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(17, rank > 0, 1, [rank*(rank - 1)/2])
   in(1) = rank
   call MPI_Exscan(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call check(17, rank > 0, 1, [rank*(rank - 1)/2])

   call MPI_Allreduce(sent, total, operations, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   do i = 1, operations
      if (total(i) == 0 .and. rank == 0) print '(A,A)', 'nothing was sent between sites for ', trim(names(i))
      if (total(i) == 0) wrong = wrong + 1
   end do
   call MPI_Allreduce(wrong, any_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   if (rank == 0 .and. any_wrong == 0) print '(A)', 'collectives_mpi: all right'
   call MPI_Finalize(error)
   if (any_wrong /= 0) stop 1

contains

   ! What an operation has sent between sites since the one before.
   subroutine seen(operation)
      integer, intent(in) :: operation
      call crossed(now)
      sent(operation) = sent(operation) + now - before
      before = now
   end subroutine

   subroutine check(operation, concerned, count, values)
      integer, intent(in) :: operation, count, values(:)
      logical, intent(in) :: concerned
      call seen(operation)
      if (.not. concerned) return
      if (any(in(1:count) /= values(1:count))) then
         print '(A,I0,A,A,A,10(1X,I0))', 'rank ', rank, ': ', trim(names(operation)), ':', in(1:min(count, 10))
         wrong = wrong + 1
      end if
   end subroutine
end program
