! A ring of growing arrays, contents checked: Fortran 90, use mpi. Exit status 1 if an element is wrong.
program ring
   use mpi
   implicit none
   integer, parameter :: most = 1000000
   integer :: rank, ranks, next, before, count, i, error, wrong, any_wrong
   double precision, allocatable :: out(:), in(:)

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
   next = mod(rank + 1, ranks)
   before = mod(rank + ranks - 1, ranks)
   allocate (out(most), in(most))
   wrong = 0
   count = 1
   do while (count <= most)
      do i = 1, count
         out(i) = dble(rank)*1d7 + dble(i) + dble(count)/3d0
      end do
      in(1:count) = -1d0
      call MPI_Sendrecv(out, count, MPI_DOUBLE_PRECISION, next, count, &
                        in, count, MPI_DOUBLE_PRECISION, before, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      do i = 1, count
         if (in(i) /= dble(before)*1d7 + dble(i) + dble(count)/3d0) wrong = wrong + 1
      end do
      count = count*10
   end do
   call MPI_Allreduce(wrong, any_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   if (rank == 0 .and. any_wrong == 0) print '(A,I0,A)', 'ring_mpi: ', ranks, ' ranks, all right'
   call MPI_Finalize(error)
   if (any_wrong /= 0) stop 1
end program
