import os, socket, time, statistics
rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
N = 300
if rank == 1:
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("", 5555)); s.listen(50)
    for _ in range(N):
        c, _a = s.accept(); c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); c.sendall(c.recv(1)); c.recv(1); c.close()
else:
    t = []
    time.sleep(0.5)
    for _ in range(N):
        b = time.perf_counter(); c = socket.create_connection(("10.2.0.1", 5555), timeout=20); c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        c.sendall(b"x"); c.recv(1); t.append((time.perf_counter() - b) * 1000); c.close()
    t.sort(); print("connect+echo ms: median %.2f p90 %.2f n %d" % (statistics.median(t), t[int(N * .9)], N))
