#!/bin/sh
# Fills a cluster whose nodes jobs share, so that what it answers is worth recording: 'busbar slurm record FOLDER'.
#
# For 'busbar lab up --nodes 4 --gpu-nodes 2 --shared'. SLURM_CONF says which cluster, PATH where its programs are.
set -eu

submit() {
    sbatch -o /dev/null -D / "$@" --wrap 'sleep 600'
}

submit -n2 -N1 --mem=300
submit -n5 -N2 --mem-per-cpu=50
submit -pgpu -n3 --gres=gpu:2
submit -pgpu -n1 --gpus=3
submit -pgpu -n2 -N1 --gpus-per-task=1
submit -n1 --exclusive
# All of these run; of those that follow, some wait.
sleep 2
submit -n6
submit -H -n2 --mem=0
submit -pall,gpu -N2 -n4 --array=0-3
submit -pgpu -N1 --gpus-per-socket=1 --sockets-per-node=2
sleep 3
