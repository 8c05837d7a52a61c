"""A training step of pipeline stages as DTensors, compared with the same step in one process.

Each stage is a layer that is tensor-parallel along ``tp``; the gradients of its weights are summed
along ``dp``; activations and their gradients go along ``pp``.  The numbers are small integers, so
every sum is exact and the results are equal bit by bit.
"""

import os

import torch
import torch.distributed as dist
from mesh import device_mesh  # p2smt export plan.json --to device-mesh -o mesh.py
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

device = "cuda" if torch.cuda.is_available() else "cpu"
if device == "cuda":
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
mesh = device_mesh(device)
stage, pipeline, layer = mesh.get_local_rank("pp"), mesh.get_group("pp"), mesh["dp", "tp"]
first, last = stage == 0, stage == mesh["pp"].size() - 1

torch.manual_seed(0)  # the same batch and weights on every rank
batch = torch.randint(-3, 4, (12, 8)).float().to(device)
weights = [torch.randint(-3, 4, (8, 8)).float().to(device) for _ in range(mesh["pp"].size())]
rows, columns = [Shard(0), Replicate()], [Replicate(), Shard(1)]  # along dp and along tp

weight = distribute_tensor(weights[stage], layer, columns).requires_grad_()
x = distribute_tensor(batch, layer, rows)
if not first:
    dist.recv(x.to_local(), group=pipeline, group_src=stage - 1)
    x.requires_grad_()
y = (x @ weight).redistribute(layer, rows)
gradient = torch.ones_like(y.to_local())  # of the sum of all outputs
if not last:
    dist.send(y.to_local().detach(), group=pipeline, group_dst=stage + 1)
    dist.recv(gradient, group=pipeline, group_src=stage + 1)
y.backward(DTensor.from_local(gradient, layer, rows))
if not first:
    dist.send(x.grad.redistribute(layer, rows).to_local(), group=pipeline, group_dst=stage - 1)
found = weight.grad.full_tensor()

alone = [one.clone().requires_grad_() for one in weights]
output = batch
for one in alone:
    output = output @ one
output.sum().backward()
same = torch.tensor(float(torch.equal(found, alone[stage].grad)), device=device)
dist.all_reduce(same)
if dist.get_rank() == 0:
    axes = ", ".join(f"{n}={s}" for n, s in zip(mesh.mesh_dim_names, mesh.shape, strict=True))
    print(f"{int(same)} of {dist.get_world_size()} ranks ({axes}) have the right gradients")
dist.barrier()  # no rank ends while another needs it
dist.destroy_process_group()
