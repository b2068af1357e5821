! line_fortran [ROWS]: finds y = 1 + 2 x + 3 x^2 from ROWS points a rank by least squares, real and complex. The
! last line says what was found and whether it is right to rounding.
program line
    use mpi
    use causeway_tsqr
    implicit none
    integer, parameter :: columns = 3
    type(c_ptr) :: tree, q
    real(c_double), allocatable :: a(:, :), b(:, :)
    complex(c_double_complex), allocatable :: a_complex(:, :), b_complex(:, :)
    real(c_double) :: r(columns, columns), x(columns, 1), point
    complex(c_double_complex) :: r_complex(columns, columns), x_complex(columns, 1)
    character(20) :: text
    integer :: rank, ranks, rows, i, error
    logical :: is_right

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    rows = 1000
    call get_command_argument(1, text)
    if (text /= '') read (text, *) rows
    call must(causeway_tsqr_open(MPI_COMM_WORLD, tree, columns))

    allocate (a(rows, columns), b(rows, 1))
    do i = 1, rows
        point = (i - 0.5_c_double) / rows
        a(i, :) = [1.0_c_double, point, point**2]
        b(i, 1) = 1 + 2 * point + 3 * point**2
    end do
    a_complex = cmplx(a, kind=c_double)
    a_complex(:, 2) = a_complex(:, 2) * (0, 1)
    b_complex = cmplx(b, kind=c_double)
    call must(causeway_tsqr_factor(tree, a, r, causeway_tsqr_keep_q, q))
    call must(causeway_tsqr_project(q, b, x, 0))
    call causeway_tsqr_free(q)
    call must(causeway_tsqr_factor(tree, a_complex, r_complex, causeway_tsqr_keep_q, q))
    call must(causeway_tsqr_project(q, b_complex, x_complex, 0))
    call causeway_tsqr_free(q)
    if (rank == 0) then
        do i = columns, 1, -1
            x(i, 1) = (x(i, 1) - dot_product(r(i, i + 1:), x(i + 1:, 1))) / r(i, i)
            x_complex(i, 1) = (x_complex(i, 1) - sum(r_complex(i, i + 1:) * x_complex(i + 1:, 1))) / r_complex(i, i)
        end do
        is_right = all(abs(x(:, 1) - [1, 2, 3]) < 1e-12_c_double) .and. &
            all(abs(x_complex(:, 1) - [(1, 0), (0, -2), (3, 0)]) < 1e-12_c_double)
        print '(a, i0, a, 3f8.4, a, l2)', 'line: ', ranks, ' ranks, coefficients', x, ', right:', is_right
    end if
    call causeway_tsqr_close(tree)
    call MPI_Finalize(error)

contains

    subroutine must(status)
        integer(c_int), intent(in) :: status
        if (status == causeway_tsqr_ok) return
        if (rank == 0) print '(2a)', 'line: ', causeway_tsqr_sentence(status)
        call MPI_Finalize(error)
        stop 1
    end subroutine
end program
