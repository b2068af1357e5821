! collatz.c in Fortran: how many steps each number takes to come down to 1, and which takes most. The last line
! is that of collatz.c.
module collatz_work
    use causeway_workers
    implicit none

contains

    integer(c_int) function steps_of(item, context) bind(C)
        type(causeway_workers_item), intent(in) :: item
        type(c_ptr), value :: context
        integer(c_int32_t), pointer :: steps
        integer(c_int64_t), pointer :: longest(:)
        integer(c_int64_t) :: n
        call c_f_pointer(item%result, steps)
        call c_f_pointer(item%sum, longest, [2])
        n = item%index + 1
        do while (n /= 1)
            if (mod(n, 2_c_int64_t) == 0) then
                n = n / 2
            else
                n = 3 * n + 1
            end if
            steps = steps + 1
        end do
        if (steps > longest(2)) longest = [item%index + 1, int(steps, c_int64_t)]
        steps_of = 0
        ! There is no context: the item says all.
        if (c_associated(context)) steps_of = 1
    end function

    subroutine longer(into, later, context) bind(C)
        type(c_ptr), value :: into, later, context
        integer(c_int64_t), pointer :: longest(:), other(:)
        call c_f_pointer(into, longest, [2])
        call c_f_pointer(later, other, [2])
        if (other(2) > longest(2)) longest = other
        if (c_associated(context)) error stop 'nobody gives a context'
    end subroutine

end module

program collatz
    use mpi
    use collatz_work
    implicit none
    type(causeway_workers_job) :: job
    integer(c_int32_t), allocatable, target :: steps(:)
    integer(c_int64_t), target :: longest(2)
    integer(c_int64_t) :: check
    integer :: ierror, rank, status, i
    character(20) :: word
    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call causeway_workers_init(job)
    job%items = 1000000
    if (command_argument_count() > 0) then
        call get_command_argument(1, word)
        read (word, *) job%items
    end if
    allocate (steps(merge(job%items, 0_c_int64_t, rank == 0)))
    job%compute = c_funloc(steps_of)
    job%combine = c_funloc(longer)
    job%result_bytes = 4
    job%sum_bytes = 16
    job%sum = c_loc(longest)
    if (rank == 0 .and. job%items > 0) job%results = c_loc(steps)
    status = causeway_workers_run(MPI_COMM_WORLD, job)
    if (rank == 0 .and. status /= causeway_workers_ok) print '(2a)', 'collatz: ', causeway_workers_error()
    ! Though ranks hang, their part is done by others.
    if (rank == 0 .and. (status == causeway_workers_ok .or. status == causeway_workers_silent)) then
        check = 0
        do i = 1, size(steps)
            check = iand(check * 31 + steps(i), int(z'ffffffff', c_int64_t))
        end do
        print '(4(a,i0))', 'of ', job%items, ' numbers ', longest(1), ' takes most steps, ', longest(2), &
            '; check ', check
    end if
    if (status == causeway_workers_silent) then
        ! A launcher that kills all ranks at once may lose what was printed right before.
        flush (6)
        call sleep(1)
        call MPI_Abort(MPI_COMM_WORLD, status, ierror)
    end if
    call MPI_Finalize(ierror)
    if (status /= causeway_workers_ok) stop 1
end program
