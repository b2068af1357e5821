! The Fortran interface of the tsqr library; causeway_tsqr.h explains every name, status and flag. Matrices are
! arrays of two dimensions without gaps; their numbers of rows and columns are their own. A communicator of
! mpif.h or `use mpi` is given as it is, one of mpi_f08 as comm%mpi_val. line_fortran.f90 is an example.
module causeway_tsqr
    use, intrinsic :: iso_c_binding
    implicit none
    private :: apart

    integer(c_int), parameter :: causeway_tsqr_ok = 0, causeway_tsqr_argument = 1, causeway_tsqr_disagree = 2, &
        causeway_tsqr_few_rows = 3, causeway_tsqr_not_finite = 4, causeway_tsqr_overflow = 5, &
        causeway_tsqr_memory = 6, causeway_tsqr_groups = 7, causeway_tsqr_wrong_tree = 8
    integer(c_int), parameter :: causeway_tsqr_r_everywhere = 1, causeway_tsqr_form_q = 2, &
        causeway_tsqr_keep_q = 4, causeway_tsqr_let_pass = 8
    integer(c_int), parameter, private :: float_type = 0, double_type = 1, complex_float_type = 2, &
        complex_double_type = 3

    interface
        integer(c_int) function tsqr_open(comm, columns, tree) bind(C, name='causeway_tsqr_open_fortran')
            import
            integer(c_int), value :: comm, columns
            type(c_ptr), intent(out) :: tree
        end function
        subroutine causeway_tsqr_close(tree) bind(C)
            import
            type(c_ptr), value :: tree
        end subroutine
        integer(c_int) function causeway_tsqr_sites(tree) bind(C)
            import
            type(c_ptr), value :: tree
        end function
        integer(c_int) function causeway_tsqr_culprit(tree) bind(C)
            import
            type(c_ptr), value :: tree
        end function
        subroutine causeway_tsqr_free(q) bind(C)
            import
            type(c_ptr), value :: q
        end subroutine
        integer(c_int) function tsqr_factor(tree, type, rows, columns, a, lda, r, ldr, flags, q) &
            bind(C, name='causeway_tsqr_factor')
            import
            type(c_ptr), value :: tree, a, r, q
            integer(c_int), value :: type, columns, flags
            integer(c_int64_t), value :: rows, lda, ldr
        end function
        integer(c_int) function tsqr_multiply(q, k, x, ldx, b, ldb) bind(C, name='causeway_tsqr_multiply')
            import
            type(c_ptr), value :: q, x, b
            integer(c_int), value :: k
            integer(c_int64_t), value :: ldx, ldb
        end function
        integer(c_int) function tsqr_project(q, k, b, ldb, x, ldx, flags) bind(C, name='causeway_tsqr_project')
            import
            type(c_ptr), value :: q, b, x
            integer(c_int), value :: k, flags
            integer(c_int64_t), value :: ldb, ldx
        end function
        type(c_ptr) function tsqr_sentence(status) bind(C, name='causeway_tsqr_sentence')
            import
            integer(c_int), value :: status
        end function
        integer(c_size_t) function tsqr_length(text) bind(C, name='strlen')
            import
            type(c_ptr), value :: text
        end function
    end interface

    ! status = causeway_tsqr_factor(tree, a, r, flags [, q]): a is rows x columns, r columns x columns.
    interface causeway_tsqr_factor
        procedure factor_float, factor_double, &
            factor_complex_float, factor_complex_double
    end interface

    ! status = causeway_tsqr_multiply(q, x, b): b = Q x, x at rank 0.
    interface causeway_tsqr_multiply
        procedure multiply_float, multiply_double, &
            multiply_complex_float, multiply_complex_double
    end interface

    ! status = causeway_tsqr_project(q, b, x, flags): x = Q^H b.
    interface causeway_tsqr_project
        procedure project_float, project_double, &
            project_complex_float, project_complex_double
    end interface

contains

    ! columns, 64 by itself, is about how many the matrices have.
    integer(c_int) function causeway_tsqr_open(comm, tree, columns) result(status)
        integer, intent(in) :: comm
        type(c_ptr), intent(out) :: tree
        integer, intent(in), optional :: columns
        integer(c_int) :: usual
        usual = 64
        if (present(columns)) usual = columns
        status = tsqr_open(comm, usual, tree)
    end function

    ! What a status means.
    function causeway_tsqr_sentence(status) result(text)
        integer(c_int), intent(in) :: status
        character(:), allocatable :: text
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: found
        integer :: i, length
        found = tsqr_sentence(status)
        length = int(tsqr_length(found))
        call c_f_pointer(found, letters, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = letters(i)
        end do
    end function

    ! The distance of columns, which is at least 1.
    integer(c_int64_t) function apart(rows)
        integer, intent(in) :: rows
        apart = max(1, rows)
    end function

    integer(c_int) function factor_float(tree, a, r, flags, q) result(status)
        type(c_ptr), intent(in) :: tree
        real(c_float), intent(inout), contiguous, target :: a(:, :), r(:, :)
        integer(c_int), intent(in) :: flags
        type(c_ptr), intent(out), optional, target :: q
        type(c_ptr) :: kept
        kept = c_null_ptr
        if (present(q)) kept = c_loc(q)
        status = tsqr_factor(tree, float_type, size(a, 1, c_int64_t), size(a, 2), c_loc(a), apart(size(a, 1)), &
            c_loc(r), apart(size(r, 1)), flags, kept)
    end function

    integer(c_int) function multiply_float(q, x, b) result(status)
        type(c_ptr), intent(in) :: q
        real(c_float), intent(in), contiguous, target :: x(:, :)
        real(c_float), intent(inout), contiguous, target :: b(:, :)
        status = tsqr_multiply(q, size(b, 2), c_loc(x), apart(size(x, 1)), c_loc(b), apart(size(b, 1)))
    end function

    integer(c_int) function project_float(q, b, x, flags) result(status)
        type(c_ptr), intent(in) :: q
        real(c_float), intent(in), contiguous, target :: b(:, :)
        real(c_float), intent(inout), contiguous, target :: x(:, :)
        integer(c_int), intent(in) :: flags
        status = tsqr_project(q, size(b, 2), c_loc(b), apart(size(b, 1)), c_loc(x), apart(size(x, 1)), flags)
    end function

    integer(c_int) function factor_double(tree, a, r, flags, q) result(status)
        type(c_ptr), intent(in) :: tree
        real(c_double), intent(inout), contiguous, target :: a(:, :), r(:, :)
        integer(c_int), intent(in) :: flags
        type(c_ptr), intent(out), optional, target :: q
        type(c_ptr) :: kept
        kept = c_null_ptr
        if (present(q)) kept = c_loc(q)
        status = tsqr_factor(tree, double_type, size(a, 1, c_int64_t), size(a, 2), c_loc(a), apart(size(a, 1)), &
            c_loc(r), apart(size(r, 1)), flags, kept)
    end function

    integer(c_int) function multiply_double(q, x, b) result(status)
        type(c_ptr), intent(in) :: q
        real(c_double), intent(in), contiguous, target :: x(:, :)
        real(c_double), intent(inout), contiguous, target :: b(:, :)
        status = tsqr_multiply(q, size(b, 2), c_loc(x), apart(size(x, 1)), c_loc(b), apart(size(b, 1)))
    end function

    integer(c_int) function project_double(q, b, x, flags) result(status)
        type(c_ptr), intent(in) :: q
        real(c_double), intent(in), contiguous, target :: b(:, :)
        real(c_double), intent(inout), contiguous, target :: x(:, :)
        integer(c_int), intent(in) :: flags
        status = tsqr_project(q, size(b, 2), c_loc(b), apart(size(b, 1)), c_loc(x), apart(size(x, 1)), flags)
    end function

    integer(c_int) function factor_complex_float(tree, a, r, flags, q) result(status)
        type(c_ptr), intent(in) :: tree
        complex(c_float_complex), intent(inout), contiguous, target :: a(:, :), r(:, :)
        integer(c_int), intent(in) :: flags
        type(c_ptr), intent(out), optional, target :: q
        type(c_ptr) :: kept
        kept = c_null_ptr
        if (present(q)) kept = c_loc(q)
        status = tsqr_factor(tree, complex_float_type, size(a, 1, c_int64_t), size(a, 2), c_loc(a), apart(size(a, 1)), &
            c_loc(r), apart(size(r, 1)), flags, kept)
    end function

    integer(c_int) function multiply_complex_float(q, x, b) result(status)
        type(c_ptr), intent(in) :: q
        complex(c_float_complex), intent(in), contiguous, target :: x(:, :)
        complex(c_float_complex), intent(inout), contiguous, target :: b(:, :)
        status = tsqr_multiply(q, size(b, 2), c_loc(x), apart(size(x, 1)), c_loc(b), apart(size(b, 1)))
    end function

    integer(c_int) function project_complex_float(q, b, x, flags) result(status)
        type(c_ptr), intent(in) :: q
        complex(c_float_complex), intent(in), contiguous, target :: b(:, :)
        complex(c_float_complex), intent(inout), contiguous, target :: x(:, :)
        integer(c_int), intent(in) :: flags
        status = tsqr_project(q, size(b, 2), c_loc(b), apart(size(b, 1)), c_loc(x), apart(size(x, 1)), flags)
    end function

    integer(c_int) function factor_complex_double(tree, a, r, flags, q) result(status)
        type(c_ptr), intent(in) :: tree
        complex(c_double_complex), intent(inout), contiguous, target :: a(:, :), r(:, :)
        integer(c_int), intent(in) :: flags
        type(c_ptr), intent(out), optional, target :: q
        type(c_ptr) :: kept
        kept = c_null_ptr
        if (present(q)) kept = c_loc(q)
        status = tsqr_factor(tree, complex_double_type, size(a, 1, c_int64_t), size(a, 2), c_loc(a), apart(size(a, 1)), &
            c_loc(r), apart(size(r, 1)), flags, kept)
    end function

    integer(c_int) function multiply_complex_double(q, x, b) result(status)
        type(c_ptr), intent(in) :: q
        complex(c_double_complex), intent(in), contiguous, target :: x(:, :)
        complex(c_double_complex), intent(inout), contiguous, target :: b(:, :)
        status = tsqr_multiply(q, size(b, 2), c_loc(x), apart(size(x, 1)), c_loc(b), apart(size(b, 1)))
    end function

    integer(c_int) function project_complex_double(q, b, x, flags) result(status)
        type(c_ptr), intent(in) :: q
        complex(c_double_complex), intent(in), contiguous, target :: b(:, :)
        complex(c_double_complex), intent(inout), contiguous, target :: x(:, :)
        integer(c_int), intent(in) :: flags
        status = tsqr_project(q, size(b, 2), c_loc(b), apart(size(b, 1)), c_loc(x), apart(size(x, 1)), flags)
    end function

end module
