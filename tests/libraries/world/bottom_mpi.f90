! bottom_mpi: MPI_BOTTOM with datatypes of absolute addresses, from Fortran.
program bottom_mpi
  use mpi
  implicit none
  integer, parameter :: parts = 20, most = 16
  integer, volatile :: mine(parts), all(parts, most), come(parts, most)
  integer :: rank, ranks, error, root, wrong, total, request
  integer :: at_mine, i, k
  integer :: ones(most), zeros(most), from(most), into(most)

  call mpi_init(error)
  call mpi_comm_rank(mpi_comm_world, rank, error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  wrong = 0
  call make_type(mine, at_mine)
  do root = 0, ranks - 1
    call fill()
    call mpi_bcast(mpi_bottom, 1, at_mine, root, mpi_comm_world, error)
    call check(root, 0)
    call fill()
    call mpi_ibcast(mpi_bottom, 1, at_mine, root, mpi_comm_world, request, error)
    call mpi_wait(request, mpi_status_ignore, error)
    call check(root, 0)
    call fill()
    call mpi_scatter(all, parts, mpi_integer, mpi_bottom, 1, at_mine, root, mpi_comm_world, error)
    call check(root, rank)
    call fill()
    all = -1
    call mpi_gather(mpi_bottom, 1, at_mine, all, parts, mpi_integer, root, mpi_comm_world, error)
    if (rank == root) call check_all(all, 0)
  end do
  call fill()
  all = -1
  call mpi_allgather(mpi_bottom, 1, at_mine, all, parts, mpi_integer, mpi_comm_world, error)
  call check_all(all, 0)
  ones = 1
  zeros = 0
  do i = 1, ranks
    call make_type(all(:, i), from(i))
    call make_type(come(:, i), into(i))
  end do
  call fill()
  come = -1
  call mpi_alltoallw(mpi_bottom, ones, zeros, from, mpi_bottom, ones, zeros, into, mpi_comm_world, error)
  call check_all(come, rank)
  call mpi_allreduce(wrong, total, 1, mpi_integer, mpi_sum, mpi_comm_world, error)
  if (rank == 0 .and. total == 0) print '(a)', 'bottom_mpi: all right'
  call mpi_finalize(error)
  if (total > 0) stop 1

contains

  subroutine make_type(where, type)
    integer, target :: where(parts)
    integer :: type
    integer(kind=mpi_address_kind) :: places(1)
    call mpi_get_address(where, places(1), error)
    call mpi_type_create_hindexed(1, (/ parts /), places, mpi_integer, type, error)
    call mpi_type_commit(type, error)
  end subroutine

  subroutine fill()
    do i = 1, parts
      mine(i) = 10000 * rank + i
      do k = 1, ranks
        all(i, k) = 10000 * rank + 100 * (k - 1) + i
      end do
    end do
  end subroutine

  subroutine check(of, to)
    integer :: of, to
    do i = 1, parts
      if (mine(i) /= 10000 * of + 100 * to + i) wrong = wrong + 1
    end do
  end subroutine

  subroutine check_all(came, to)
    integer :: came(parts, most), to
    do k = 1, ranks
      do i = 1, parts
        if (came(i, k) /= 10000 * (k - 1) + 100 * to + i) wrong = wrong + 1
      end do
    end do
  end subroutine
end program
