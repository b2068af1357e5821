"""Makes the router it runs on forget every connection it tracks, as a translator does that is
restarted: one ctnetlink message, because Debian's conntrack command is not among what the tests
need. Says how many it knew."""
import os
import socket
import struct

NETLINK_NETFILTER = 12
DELETE = 1 << 8 | 2  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_DELETE; without a tuple: all
REQUEST_AND_ACK = 1 | 4
ERROR = 2  # NLMSG_ERROR; the acknowledgement is one with number 0

with open("/proc/sys/net/netfilter/nf_conntrack_count") as count:
    print(count.read().strip())
kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
header = struct.pack("=IHHII", 20, DELETE, REQUEST_AND_ACK, 1, 0)
kernel.send(header + struct.pack("=BBH", socket.AF_UNSPEC, 0, 0))
_, kind, _, _, _, number = struct.unpack_from("=IHHIIi", kernel.recv(4096))
if kind != ERROR or number != 0:
    raise SystemExit(f"forget-mappings: {os.strerror(-number)}")
