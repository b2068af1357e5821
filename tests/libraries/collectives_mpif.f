C     Every collective that the library improves, its values, and that
C     the library sent something between sites for it: Fortran 77, mpif.h.
C     Exit status 1 if one is wrong.
      program collectives_mpif
      implicit none
      include 'mpif.h'
      integer most, operations
      parameter (most = 64, operations = 17)
      integer ranks, last, sum, i, error, any_wrong
      integer out(most), ones(most), places(most), bytes(most)
      integer types(most), total(most)
      integer in(most), sent(most), rank, before, wrong
      common /state/ in, sent, rank, before, wrong

      call MPI_Init(error)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
      call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
      if (ranks .gt. most) stop 1
      last = ranks - 1
      sum = ranks*(ranks - 1)/2
      call fill(ones, 1, 0)
      call fill(types, MPI_INTEGER, 0)

      call fill(places, 0, 1)
      call fill(bytes, 0, 4)
      wrong = 0
      call fill(sent, 0, 0)
C     What a communicator is known by is agreed on in its first operation.
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call crossed(before)

      call MPI_Barrier(MPI_COMM_WORLD, error)
      call seen(1)

      in(1) = rank
      call MPI_Bcast(in, 1, MPI_INTEGER, last, MPI_COMM_WORLD,
     &  error)
      call check(2, .true., 1, last, 0)

      out(1) = rank
      call MPI_Reduce(out, in, 1, MPI_INTEGER, MPI_SUM, 0,
     &  MPI_COMM_WORLD, error)
      call check(3, rank .eq. 0, 1, sum, 0)
      in(1) = rank
      if (rank .eq. last) then
        call MPI_Reduce(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM,
     &    last, MPI_COMM_WORLD, error)
      else
        call MPI_Reduce(in, out, 1, MPI_INTEGER, MPI_SUM, last,
     &    MPI_COMM_WORLD, error)
      end if
      call check(3, rank .eq. last, 1, sum, 0)

      out(1) = rank
      call MPI_Allreduce(out, in, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      call check(4, .true., 1, sum, 0)
      in(1) = rank
      call MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, error)
      call check(4, .true., 1, sum, 0)

      call fill(out, rank, 1)
      call MPI_Reduce_scatter(out, in, ones, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, error)
      call check(5, .true., 1, sum + ranks*rank, 0)
      call fill(in, rank, 1)
      call MPI_Reduce_scatter(MPI_IN_PLACE, in, ones,
     &  MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
      call check(5, .true., 1, sum + ranks*rank, 0)

      call MPI_Reduce_scatter_block(out, in, 1, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, error)
      call check(6, .true., 1, sum + ranks*rank, 0)
      call fill(in, rank, 1)
      call MPI_Reduce_scatter_block(MPI_IN_PLACE, in, 1,
     &  MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
      call check(6, .true., 1, sum + ranks*rank, 0)

      out(1) = rank
      call fill(in, rank, 0)
      if (rank .eq. last) then
        call MPI_Gather(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1,
     &    MPI_INTEGER, last, MPI_COMM_WORLD, error)
      else
        call MPI_Gather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER,
     &    last, MPI_COMM_WORLD, error)
      end if
      call check(7, rank .eq. last, ranks, 0, 1)
      call fill(in, -1, 0)
      call MPI_Gather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, 0,
     &  MPI_COMM_WORLD, error)
      call check(7, rank .eq. 0, ranks, 0, 1)

      call fill(in, rank, 0)
      if (rank .eq. last) then
        call MPI_Gatherv(MPI_IN_PLACE, 1, MPI_INTEGER, in, ones,
     &    places, MPI_INTEGER, last, MPI_COMM_WORLD, error)
      else
        call MPI_Gatherv(out, 1, MPI_INTEGER, in, ones, places,
     &    MPI_INTEGER, last, MPI_COMM_WORLD, error)
      end if
      call check(8, rank .eq. last, ranks, 0, 1)

      in(1) = rank
      if (rank .eq. last) then
        call MPI_Scatter(places, 1, MPI_INTEGER, MPI_IN_PLACE, 1,
     &    MPI_INTEGER, last, MPI_COMM_WORLD, error)
      else
        call MPI_Scatter(places, 1, MPI_INTEGER, in, 1,
     &    MPI_INTEGER, last, MPI_COMM_WORLD, error)
      end if
      call check(9, .true., 1, rank, 0)
      in(1) = -1
      call MPI_Scatter(places, 1, MPI_INTEGER, in, 1,
     &  MPI_INTEGER, 0, MPI_COMM_WORLD, error)
      call check(9, .true., 1, rank, 0)

      in(1) = rank
      if (rank .eq. last) then
        call MPI_Scatterv(bytes, ones, places, MPI_INTEGER,
     &    MPI_IN_PLACE, 1, MPI_INTEGER, last, MPI_COMM_WORLD, error)
        in(1) = bytes(ranks)
      else
        call MPI_Scatterv(bytes, ones, places, MPI_INTEGER, in, 1,
     &    MPI_INTEGER, last, MPI_COMM_WORLD, error)
      end if
      call check(10, .true., 1, 4*rank, 0)

      call fill(in, -1, 0)
      call MPI_Allgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER,
     &  MPI_COMM_WORLD, error)
      call check(11, .true., ranks, 0, 1)
      call fill(in, rank, 0)
      call MPI_Allgather(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1,
     &  MPI_INTEGER, MPI_COMM_WORLD, error)
      call check(11, .true., ranks, 0, 1)

      call fill(in, -1, 0)
      call MPI_Allgatherv(out, 1, MPI_INTEGER, in, ones, places,
     &  MPI_INTEGER, MPI_COMM_WORLD, error)
      call check(12, .true., ranks, 0, 1)
      call fill(in, rank, 0)
      call MPI_Allgatherv(MPI_IN_PLACE, 1, MPI_INTEGER, in, ones,
     &  places, MPI_INTEGER, MPI_COMM_WORLD, error)
      call check(12, .true., ranks, 0, 1)

      call fill(out, 100*rank, 1)
      call fill(in, -1, 0)
      call MPI_Alltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER,
     &  MPI_COMM_WORLD, error)
      call check(13, .true., ranks, rank, 100)
      call fill(in, 100*rank, 1)
      call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1,
     &  MPI_INTEGER, MPI_COMM_WORLD, error)
      call check(13, .true., ranks, rank, 100)

      call fill(in, -1, 0)
      call MPI_Alltoallv(out, ones, places, MPI_INTEGER, in,
     &  ones, places, MPI_INTEGER, MPI_COMM_WORLD, error)
      call check(14, .true., ranks, rank, 100)

      call fill(in, -1, 0)
      call MPI_Alltoallw(out, ones, bytes, types, in, ones,
     &  bytes, types, MPI_COMM_WORLD, error)
      call check(15, .true., ranks, rank, 100)

      out(1) = rank
      call MPI_Scan(out, in, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      call check(16, .true., 1, rank*(rank + 1)/2, 0)
      in(1) = rank
      call MPI_Scan(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      call check(16, .true., 1, rank*(rank + 1)/2, 0)

      call MPI_Exscan(out, in, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      call check(17, rank .gt. 0, 1, rank*(rank - 1)/2, 0)
      in(1) = rank
      call MPI_Exscan(MPI_IN_PLACE, in, 1, MPI_INTEGER, MPI_SUM,
     &  MPI_COMM_WORLD, error)
      call check(17, rank .gt. 0, 1, rank*(rank - 1)/2, 0)

      call MPI_Allreduce(sent, total, operations, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, error)
      do i = 1, operations
        if (total(i) .eq. 0 .and. rank .eq. 0) print *,
     &    'nothing was sent between sites for operation', i
        if (total(i) .eq. 0) wrong = wrong + 1
      end do
      call MPI_Allreduce(wrong, any_wrong, 1, MPI_INTEGER,
     &  MPI_SUM, MPI_COMM_WORLD, error)
      if (rank .eq. 0 .and. any_wrong .eq. 0) print '(A)',
     &  'collectives_mpif: all right'
      call MPI_Finalize(error)
      if (any_wrong .ne. 0) stop 1
      end

C     The i-th of all is first + (i - 1) * step.
      subroutine fill(all, first, step)
      implicit none
      integer all(64), first, step, i
      do i = 1, 64
        all(i) = first + (i - 1) * step
      end do
      end

C     What an operation has sent between sites since the one before.
      subroutine seen(operation)
      implicit none
      integer operation, now
      integer in(64), sent(64), rank, before, wrong
      common /state/ in, sent, rank, before, wrong
      call crossed(now)
      sent(operation) = sent(operation) + now - before
      before = now
      end

C     What it has received: count values, as fill writes them.
      subroutine check(operation, concerned, count, first, step)
      implicit none
      integer operation, count, first, step, i
      logical concerned
      integer in(64), sent(64), rank, before, wrong
      common /state/ in, sent, rank, before, wrong
      call seen(operation)
      if (.not. concerned) return
      do i = 1, count
        if (in(i) .ne. first + (i - 1) * step) then
          print *, 'rank', rank, ', operation', operation,
     &      ': element', i, ' is', in(i)
          wrong = wrong + 1
        end if
      end do
      end
