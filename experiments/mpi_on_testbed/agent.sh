#!/bin/sh
# What mpirun takes for ssh: runs a command on a node of the test cluster $P2SMT_TESTBED, which has a
# host name of its own, so that ranks of different nodes do not meet in shared memory.
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "p2smt-$P2SMT_TESTBED-$host" unshare --uts sh -c 'hostname "$0" && eval "$@"' "$host" "$*"
