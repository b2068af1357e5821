C     Who is where, and a sum everybody must agree on: Fortran 77, mpif.h.
C     Exit status 1 if the sum is wrong.
      program hello
      implicit none
      include 'mpif.h'
      integer rank, ranks, length, sum, error
      character*(MPI_MAX_PROCESSOR_NAME) node
      call MPI_INIT(error)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, error)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, error)
      call MPI_GET_PROCESSOR_NAME(node, length, error)
      print '(A,I0,A,I0,A,A)', 'hello from rank ', rank, ' of ', ranks,
     &  ' on ', node(1:length)
      call MPI_ALLREDUCE(rank + 1, sum, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      if (sum .ne. ranks * (ranks + 1) / 2) stop 1
      if (rank .eq. 0) print '(A)', 'hello_mpif: all right'
      call MPI_FINALIZE(error)
      end
