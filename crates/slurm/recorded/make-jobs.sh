#!/bin/sh
# Fills a cluster with jobs of every kind, so that what it answers is worth recording: 'busbar slurm record FOLDER'.
#
# For a private cluster where nothing else runs, such as 'busbar lab up --nodes 8': at least eight nodes called n1, n2 and
# so on, licences called power, and root, who may do all of this. SLURM_CONF says which cluster, PATH where its programs are.
set -eu

submit() {
    name=$1
    shift
    sbatch --parsable -o /dev/null -D / -J "$name" "$@"
}

# Waits until a job is in a state, for two minutes at the most.
await() {
    for _ in $(seq 240); do
        [ "$(squeue -h -t all -j "$1" -O State:0)" = "$2" ] && return
        sleep 0.5
    done
    echo "job $1 is not $2" >&2
    exit 1
}

ended=$(submit finished -N1 -t5 --wrap 'true')
failed=$(submit failed -N1 -t5 -L power:200 --wrap 'exit 3')
killed=$(submit killed -N1 -t5 --wrap 'kill -9 $$')
await "$ended" COMPLETED
await "$failed" FAILED
await "$killed" FAILED

running=$(submit running -N2 -t300 -L power:400 --comment='busbar app=lulesh slowdown=10% nodes=1-3; for the paper' --wrap 'sleep 3600')
suspended=$(submit suspended -N1 -t300 --wrap 'sleep 3600')
cancelled=$(submit cancelled -N1 -t300 --wrap 'sleep 3600')
requeued=$(submit requeued -N1 -t300 --wrap 'sleep 3600')
for job in "$running" "$suspended" "$cancelled" "$requeued"; do
    await "$job" RUNNING
done
scontrol suspend "$suspended"
scancel "$cancelled"
scontrol requeuehold "$requeued"
await "$suspended" SUSPENDED
await "$cancelled" CANCELLED
await "$requeued" PENDING

submit array -N1 -t300 '--array=1-5%2' --wrap 'sleep 3600' >/dev/null
submit dependent -N1 -t5 --dependency="afterok:$running" --wrap 'true' >/dev/null
submit 'name with | and = in it' -H -N1-3 -t5 --comment='a comment
of two lines, with State=RUNNING and |' --wrap 'true' >/dev/null
submit later -N1 -t5 --begin=now+1hour --wrap 'true' >/dev/null
submit unlimited -N1 --begin=now+1hour --wrap 'true' >/dev/null
marked=$(submit marked -N2-4 -t1-12:00:00 -H -w n2 --wrap 'true')
scontrol hold "$marked"
scontrol update jobid="$marked" AdminComment=busbar
submit parts -H -N1 -t5 : -N2 -t5 --wrap 'true' >/dev/null

scontrol update nodename=n8 state=drain reason='busbar: no agent'
scontrol create reservation reservationname=busbar user=root licenses=power:100 starttime=now duration=UNLIMITED \
    flags=ANY_NODES,IGNORE_JOBS
scontrol create reservation reservationname=maintenance user=root nodes=n7 starttime=now+2days duration=60 flags=MAINT
squeue -a -t all
