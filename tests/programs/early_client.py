"""A client that begins before its server listens, as services that start together do.

Rank 0 serves. The last rank tries again when it is refused, with a deadline, by asyncio and by
Python's sockets. Arguments: the number of ranks, a directory that both see, the server's host. The
environment has the rank, as MPI launchers set it. Nobody sleeps to wait: the server listens when
the client says that it was refused."""

import asyncio
import errno
import os
import select
import socket
import sys
import time

PORT, SECONDS, PATIENCE = 23510, 10, 40
DATA = bytes(range(256)) * 4000
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")


def serve(listener, connections):
    for _ in range(connections):
        connection, _ = listener.accept()
        got = b"".join(iter(lambda: connection.recv(65536), b""))
        connection.sendall(b"same" if got == DATA else b"other")
        connection.close()


def refused_at_first(connect, was_refused):
    """What connect returns in the end; it must have been refused before."""
    # Each try takes a round trip; a server on a busy host may need many of them.
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            return connect()
        except ConnectionRefusedError:
            was_refused()
    raise SystemExit(f"early_client: refused for {PATIENCE} s")


async def over_streams(host):
    reader, writer = await asyncio.open_connection(host, PORT)
    writer.write(DATA)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


def over_socket(connection):
    connection.sendall(DATA)
    connection.shutdown(socket.SHUT_WR)
    return b"".join(iter(lambda: connection.recv(100), b""))


def main():
    ranks, directory, server = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    rank = int(next(os.environ[name] for name in RANKS if name in os.environ))
    told = os.path.join(directory, "refused")
    if rank == 0:
        os.mkfifo(told + ".part")
        os.rename(told + ".part", told)
        # Blocks until the client opens it, too.
        open(told, encoding="ascii").close()
        listener = socket.create_server((server, PORT))
        serve(listener, 3)
    elif rank == ranks - 1:
        address = socket.gethostbyname(server)
        was_told = False

        def was_refused():
            nonlocal was_told
            # Before the server has begun there is nothing to open; the next refusal tells it then.
            if not was_told and os.path.exists(told):
                os.close(os.open(told, os.O_WRONLY))
                was_told = True

        connect = lambda: socket.create_connection((address, PORT), timeout=SECONDS)  # noqa: E731
        with refused_at_first(connect, was_refused) as connection:
            print("deadline:", over_socket(connection).decode())
        print("asyncio:", asyncio.run(over_streams(address)).decode())
        with socket.socket() as plain:
            plain.setblocking(False)
            begun = plain.connect_ex((address, PORT))
            poll = select.poll()
            poll.register(plain, select.POLLOUT)
            poll.poll(SECONDS * 1000)
            failure = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            plain.setblocking(True)
            is_right = begun == errno.EINPROGRESS and failure == 0 and over_socket(plain) == b"same"
            print("poll:", "same" if is_right else (begun, failure))
        with socket.socket() as nobody:
            nobody.setblocking(False)
            nobody.connect_ex((address, PORT + 1))
            failure = nobody.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            print("nobody listens:", errno.errorcode.get(failure, failure))


main()
