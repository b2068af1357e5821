! The Fortran interface of the workers library; causeway_workers.h explains every name. A communicator of
! mpif.h or `use mpi` is given as it is, one of mpi_f08 as comm%mpi_val. collatz_fortran.f90 is an example.
module causeway_workers
    use, intrinsic :: iso_c_binding
    implicit none

    integer(c_int), parameter :: causeway_workers_ok = 0, causeway_workers_no_items = 1, &
        causeway_workers_parameter = 2, causeway_workers_groups = 3, causeway_workers_failed = 4, &
        causeway_workers_silent = 5, causeway_workers_mpi = 6
    integer(c_int), parameter :: causeway_workers_shape_auto = 0, causeway_workers_flat = 1, &
        causeway_workers_hierarchical = 2
    integer(c_int), parameter :: causeway_workers_boss_auto = 0, causeway_workers_boss_computes = 1, &
        causeway_workers_boss_serves = 2

    ! What compute gets; c_f_pointer makes result and sum variables. Items are counted from 0.
    type, bind(C) :: causeway_workers_item
        integer(c_int64_t) :: index
        type(c_ptr) :: result, sum, list
    end type

    type, bind(C) :: causeway_workers_lists
        type(c_ptr) :: offsets, data
    end type

    type, bind(C) :: causeway_workers_job
        integer(c_int64_t) :: items
        type(c_funptr) :: compute
        type(c_ptr) :: context
        integer(c_int64_t) :: result_bytes
        integer(c_int) :: has_lists
        integer(c_int64_t) :: sum_bytes
        type(c_funptr) :: combine
        type(c_ptr) :: sum_start
        type(c_ptr) :: results, sum, lists
        type(c_funptr) :: collect
        integer(c_int64_t) :: block_items
        type(c_ptr) :: groups
        integer(c_int) :: color, shape, boss, attempts
        real(c_double) :: deadline_seconds, patience_seconds
        integer(c_int64_t) :: piece_bytes
        integer(c_int) :: progress
        integer(c_int64_t) :: messages_received, messages_sent, messages_far, largest_message, &
            retries, copies
        integer(c_int) :: children, is_hierarchical
    end type

    abstract interface
        integer(c_int) function causeway_workers_compute(item, context) bind(C)
            import
            type(causeway_workers_item), intent(in) :: item
            type(c_ptr), value :: context
        end function
        subroutine causeway_workers_combine(into, later, context) bind(C)
            import
            type(c_ptr), value :: into, later, context
        end subroutine
    end interface

    interface
        subroutine workers_init(job) bind(C, name='causeway_workers_init')
            import
            type(causeway_workers_job), intent(out) :: job
        end subroutine
        integer(c_int) function causeway_workers_run(comm, job) bind(C, name='causeway_workers_run_fortran')
            import
            integer(c_int), value :: comm
            type(causeway_workers_job), intent(inout) :: job
        end function
        subroutine causeway_workers_append(item, data, bytes) bind(C)
            import
            type(causeway_workers_item), intent(in) :: item
            type(c_ptr), value :: data
            integer(c_int64_t), value :: bytes
        end subroutine
        subroutine causeway_workers_lists_free(lists) bind(C)
            import
            type(causeway_workers_lists), intent(inout) :: lists
        end subroutine
        integer(c_int64_t) function causeway_workers_job_bytes() bind(C)
            import
        end function
        type(c_ptr) function workers_error() bind(C, name='causeway_workers_error')
            import
        end function
        integer(c_size_t) function workers_length(text) bind(C, name='strlen')
            import
            type(c_ptr), value :: text
        end function
    end interface

contains

    subroutine causeway_workers_init(job)
        type(causeway_workers_job), intent(out) :: job
        if (c_sizeof(job) /= causeway_workers_job_bytes()) error stop 'causeway_workers.f90 is of another version'
        call workers_init(job)
    end subroutine

    ! Why the last run did not return causeway_workers_ok.
    function causeway_workers_error() result(text)
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: found
        integer :: i, length
        found = workers_error()
        length = int(workers_length(found))
        call c_f_pointer(found, letters, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = letters(i)
        end do
    end function

end module
