#!/usr/bin/env python3
"""hostile_neighbour.py NODE...: what another user of a head node can do to jobs and gateways, all
at once.

It needs no secret and no privilege: an account on the head node, and one on the nodes to see what
listens there. It connects to every port at which programs on the nodes listen, from the ports that
deliveries come from, and says nothing, a half of what they expect, or more than that. It does the
same to the gateway's own ports. It prints "ready" once it holds connections to these, and at
SIGTERM how many it has made in all."""

import errno
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time

DELIVERY_PORTS = range(20000, 32768)
GATEWAY_PORTS = (7000, 7001)
# How many connections are held to each kind of program, and made to one address in a round.
HELD = 200
AT_ONCE = 8
# What a delivery begins with: nothing yet, a half, and one that claims too much.
FALSE_DELIVERIES = [b"", b"\r\n\r\n\0\r\nQUIT\n", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff"]
NOISE = FALSE_DELIVERIES + [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00"]


def own_address(node):
    """The address of this host from which a node is reached."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node, 9))
        return probe.getsockname()[0]


def listening(lines):
    """Addresses at which something listens, of lines of proc_net_tcp."""
    for line in lines:
        fields = line.split()
        if len(fields) > 3 and fields[3] == "0A":
            address, port = fields[1].split(":")
            yield socket.inet_ntoa(int(address, 16).to_bytes(4, sys.byteorder)), int(port, 16)


def gateways_here():
    """Addresses at which a gateway of this host listens. Launchers are left alone: hydra ends when
    anybody connects to it and hangs up, without Causeway, too."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return {to for to in listening(table) if to[1] in GATEWAY_PORTS}


class Node:
    """What listens on a node, but for its ssh server, seen ten times a second."""

    def __init__(self, name):
        self.address = socket.gethostbyname(name)
        self.ports = set()
        look = "while sleep 0.1; do cat /proc/net/tcp; echo .; done"
        command = ["ssh", "-o", "BatchMode=yes", name, look]
        self.shell = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        lines = []
        for line in self.shell.stdout:
            lines.append(line)
            if line == ".\n":
                self.ports = {port for _, port in listening(lines) if port > 1024}
                lines = []

    def programs(self):
        return [(self.address, port) for port in self.ports]


def begin(to, source):
    """A connection under way from one of the ports of deliveries, or None."""
    client = socket.socket()
    client.setblocking(False)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        client.bind((source, random.choice(DELIVERY_PORTS)))
    except OSError:
        client.close()
        return None
    if client.connect_ex(to) in (0, errno.EINPROGRESS):
        return client
    client.close()
    return None


def connected(clients):
    """Those of these that are connected within a moment."""
    poll = select.poll()
    by_number = {client.fileno(): client for client in clients if client}
    for number in by_number:
        poll.register(number, select.POLLOUT)
    end, there = time.monotonic() + 0.05, []
    while by_number and time.monotonic() < end:
        for number, _events in poll.poll(20):
            poll.unregister(number)
            client = by_number.pop(number)
            if client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                there.append(client)
            else:
                client.close()
    for client in by_number.values():
        client.close()
    return there


class Held:
    """Connections that are held open; the oldest goes when there are too many."""

    def __init__(self, says):
        self.clients, self.made, self.says = [], 0, says

    def attack(self, to, source):
        clients = connected([begin(to, source) for _ in range(AT_ONCE)])
        for client in clients:
            try:
                client.send(random.choice(self.says))
            except OSError:
                pass
        self.made += len(clients)
        self.clients += clients
        for client in self.clients[:-HELD]:
            client.close()
        self.clients = self.clients[-HELD:]


def main(names):
    nodes = [Node(name) for name in names]
    source = own_address(nodes[0].address)
    programs, gateways = Held(FALSE_DELIVERIES), Held(NOISE)

    def end(_signal, _frame):
        for node in nodes:
            node.shell.kill()
        made = f"{programs.made} connections to programs on nodes, {gateways.made} to gateways"
        print(f"hostile: {made}", flush=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    is_ready = False
    while True:
        for to in gateways_here():
            gateways.attack(to, source)
        for node in nodes:
            for to in node.programs():
                programs.attack(to, source)
        if gateways.made and not is_ready:
            is_ready = True
            print("ready", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
