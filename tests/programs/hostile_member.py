#!/usr/bin/env python3
"""hostile_member.py KEY_FILE SITE SUBNET FLAG PAUSE GATEWAY...: what a member of a grid with a key
file and without TLS can say to the other sites' gateways, in turn and again.

SITE is its name, SUBNET its addresses (10.3.0), a GATEWAY is NAME=ADDRESS:PORT=SUBNET of another
site. It acts while the file FLAG is there, with PAUSE seconds between two acts, and writes how
often it has done each of them to FLAG.count."""

import hashlib
import hmac
import json
import os
import random
import socket
import struct
import sys
import threading
import time

OPEN, OPENED, MESSAGE = 2, 3, 9
MOST_PAYLOAD = 60 * 1024
# No gateway keeps anybody waiting so long.
PATIENCE = 10
ACCEPTS = {"accepts": {"jobs": None, "connections": None}}


def frame(kind, payload=b"", detail=0, stream=0, position=0, length=None):
    length = len(payload) if length is None else length
    return struct.pack(">BBHIQ", kind, detail, length, stream, position) + payload


def connection(token, source, destination):
    """The request for a stream between two addresses under a job."""

    def end(host, port):
        return b"\4" + socket.inet_aton(host) + struct.pack(">H", port)

    return b"\1" + token + end(*source) + end(*destination)


def process(token, node):
    """The request for a process on a node under a job."""
    return b"\2" + token + node.encode()


class Lane:
    """The first lane of a tunnel with a gateway."""

    def __init__(self, member, gateway):
        self.said = 0
        # Of two sites the one whose name comes first opens the odd ones.
        self.first_stream = 1 if member.site < gateway.site else 2
        self.socket = socket.create_connection(gateway.address, PATIENCE)
        name, nonce, session = member.site.encode(), os.urandom(32), os.urandom(8)
        own = b"\2CWLN" + nonce + session + b"\0" + bytes([len(name)]) + name
        self.socket.sendall(own)
        fixed = self.exactly(47)
        other = fixed + self.exactly(fixed[46])
        self.exactly(32)
        transcript = b"causeway lane 2" + own + other
        self.socket.sendall(hmac.digest(member.key, transcript, hashlib.sha256))
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data

    def listen(self):
        try:
            while self.socket.recv(1 << 16):
                pass
        except OSError:
            pass

    def message(self, message):
        return self.text(json.dumps({"version": 1, "message": message}))

    def text(self, text):
        data = text.encode()
        parts = [data[at : at + MOST_PAYLOAD] for at in range(0, len(data), MOST_PAYLOAD)]
        frames = []
        for number, part in enumerate(parts, 1):
            frames.append(frame(MESSAGE, part, number < len(parts), position=self.said))
            self.said += 1
        return b"".join(frames)

    def say(self, *messages):
        self.socket.sendall(b"".join(self.message(message) for message in messages))

    def open(self, requests):
        """Opens a stream for each of these."""
        frames, stream = [], self.first_stream
        for request in requests:
            frames.append(frame(OPEN, bytes(8) + request, stream=stream, position=1 << 16))
            stream += 2
        self.socket.sendall(b"".join(frames))

    def close(self):
        """Lets the gateway read all that was said."""
        self.socket.shutdown(socket.SHUT_WR)
        self.listener.join(PATIENCE)
        self.socket.close()


class Gateway:
    def __init__(self, text):
        self.site, address, self.subnet = text.split("=")
        host, port = address.split(":")
        self.address = (host, int(port))


class Member:
    def __init__(self, key_file, site, subnet):
        with open(key_file, "rb") as key:
            self.key = key.read().strip()
        self.site, self.subnet = site, subnet

    def announcement(self, subnets, node):
        node = {"name": node, "address": f"{self.subnet}.1", "slots": 1}
        info = {
            "name": self.site,
            "subnets": subnets,
            "gateways": [f"{self.subnet}.253:7000"],
            "delivery_ports": "20000-32767",
            "nodes": [node],
            "relays": True,
        }
        return {"site": info}

    def introduced(self, gateway):
        lane = Lane(self, gateway)
        own = self.announcement([f"{self.subnet}.0/24"], f"{self.site}-1")
        lane.say(ACCEPTS, own)
        return lane

    # What it does, each with a lane of its own, which the gateway may end meanwhile.

    def claims(self, gateway):
        """What others have, or more than anybody may have."""
        false = [
            ([f"{gateway.subnet}.0/24"], f"{self.site}-1"),
            ([f"{self.subnet}.0/24"], f"{gateway.site}-1"),
            (["10.0.0.0/8"], f"{self.site}-1"),
            (["127.0.0.0/16"], f"{self.site}-1"),
            (["10.64.0.0/16", "192.168.0.0/16", "172.16.0.0/16"], f"{self.site}-1"),
        ]
        for subnets, node in false:
            lane = Lane(self, gateway)
            lane.say(ACCEPTS, self.announcement(subnets, node))
            lane.say(self.announcement([f"{gateway.subnet}.0/25"], "nobody"))
            lane.close()

    def opens(self, gateway):
        """Streams and processes under jobs that nobody knows, in any site's name."""
        lane = self.introduced(gateway)
        listed = (f"{gateway.subnet}.1", 22)
        sources = [(f"{self.subnet}.1", 5000), (f"{gateway.subnet}.2", 5000)]
        requests = [connection(os.urandom(16), source, listed) for source in sources * 1000]
        requests += [process(os.urandom(16), f"{gateway.site}-1") for _ in range(500)]
        lane.open(requests)
        lane.close()

    def jobs(self, gateway):
        """Jobs of its own that are not accepted, what it would like to start under them, and ends
        of jobs that it does not know."""
        lane = self.introduced(gateway)
        tokens = [os.urandom(16) for _ in range(200)]
        for token in tokens:
            start = {"token": token.hex(), "name": "x" * 4000, "sites": ["orsay", "rennes"]}
            lane.say({"job_start": start})
        lane.say(*({"job_end": {"token": os.urandom(16).hex()}} for _ in range(500)))
        lane.open([process(token, f"{gateway.site}-1") for token in tokens])
        lane.close()

    def relays(self, gateway):
        """Questions to a relay, and calls of relays, for sites that there are and are not."""
        lane = self.introduced(gateway)
        for number in range(1000):
            to, caller = random.choices(("orsay", "rennes", f"site{number}", "\u202e\x1b[2J"), k=2)
            near = {"orsay": 1, "rennes": 1}
            lane.say(
                {"relay_ask": {"to": to, "id": number}},
                {"relay_come": {"meeting": number, "from": caller, "ticket": "ff" * 32}},
                {"relay_offer": {"carried": number, "beyond_microseconds": near}},
            )
        lane.close()

    def long_messages(self, gateway):
        lane = self.introduced(gateway)
        long = lane.message({"of a later version": "x" * 2_000_000})
        for _ in range(20):
            lane.socket.sendall(long)
        lane.close()

    def endless_message(self, gateway):
        lane = self.introduced(gateway)
        for number in range(100):
            lane.socket.sendall(frame(MESSAGE, b" " * MOST_PAYLOAD, 1, position=lane.said + number))
        lane.close()

    def questions(self, gateway):
        """What has the gateway answer, while nobody reads."""
        lane = self.introduced(gateway)
        lane.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lane.say(*({"ping": {"number": number}} for number in range(50_000)))
        lane.close()

    def flapping(self, gateway):
        lane = self.introduced(gateway)
        for _ in range(500):
            lane.say({"lossy": {}}, {"accepts": {"jobs": "not_accepted", "connections": None}})
            lane.say(ACCEPTS, {"job_known": {"token": os.urandom(16).hex()}})
        lane.close()

    def nonsense(self, gateway):
        """Frames of no kind, texts that are no message, and streams that nobody has opened."""
        for data in (
            frame(MESSAGE, b"x", length=65535),
            frame(99),
            frame(OPENED, stream=1, position=1 << 40),
            frame(OPENED, stream=2, position=1 << 40),
            frame(OPEN, b"\0" * 8 + b"\xff" * 60, stream=1),
            frame(OPEN, b"\0" * 8 + b"\xff" * 60, stream=2),
            os.urandom(4096),
        ):
            lane = self.introduced(gateway)
            lane.socket.sendall(lane.text("{" * 5000) + data)
            lane.close()

    def half_hellos(self, gateway):
        """Strangers, or members who stop in the middle."""
        silent = [socket.create_connection(gateway.address, PATIENCE) for _ in range(100)]
        for client in silent:
            client.sendall(random.choice((b"\2CW", b"\x16\3\1\2\0", b"GET / HTTP/1.1\r\n\r\n")))
        time.sleep(0.1)
        for client in silent:
            client.close()

    ACTS = (claims, opens, jobs, relays, long_messages)
    ACTS += (endless_message, questions, flapping, nonsense, half_hellos)


def main(key_file, site, subnet, flag, pause, *gateways):
    member, counts, lock = Member(key_file, site, subnet), {}, threading.Lock()

    def act_on(gateway):
        while True:
            for act in member.ACTS:
                while not os.path.exists(flag):
                    time.sleep(0.05)
                try:
                    act(member, gateway)
                except OSError:
                    pass
                with lock:
                    counts[act.__name__] = counts.get(act.__name__, 0) + 1
                    with open(f"{flag}.part", "w", encoding="ascii") as file:
                        json.dump(counts, file)
                    os.replace(f"{flag}.part", f"{flag}.count")
                time.sleep(float(pause))

    threads = [threading.Thread(target=act_on, args=(Gateway(text),)) for text in gateways]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
