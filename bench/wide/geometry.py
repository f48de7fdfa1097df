"""Points, rotations, rays and meshes."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import F16, index, normal, positive, program, uniform


@program(normal(1 << 21, 4), normal(1 << 21, 4))
def product_of_quaternions(a: Tensor, b: Tensor) -> Tensor:
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    w, x = aw * bw - ax * bx - ay * by - az * bz, aw * bx + ax * bw + ay * bz - az * by
    y, z = aw * by - ax * bz + ay * bw + az * bx, aw * bz + ax * by - ay * bx + az * bw
    return torch.stack((w, x, y, z), -1)


@program(normal(1 << 20, 4))
def matrix_of_a_quaternion(q: Tensor) -> Tensor:
    w, x, y, z = (q / q.norm(dim=-1, keepdim=True)).unbind(-1)
    first = torch.stack((1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)), -1)
    second = torch.stack((2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)), -1)
    third = torch.stack((2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)), -1)
    return torch.stack((first, second, third), -2)


@program(normal(1 << 20, 4), normal(1 << 20, 3))
def points_turned_by_quaternions(q: Tensor, point: Tensor) -> Tensor:
    axis = q[..., 1:]
    twice = 2 * torch.linalg.cross(axis, point)
    return point + q[..., :1] * twice + torch.linalg.cross(axis, twice)


@program(normal(1 << 20, 6))
def matrix_of_six_numbers(x: Tensor) -> Tensor:
    first = x[:, :3] / x[:, :3].norm(dim=1, keepdim=True)
    rest = x[:, 3:] - (first * x[:, 3:]).sum(1, keepdim=True) * first
    second = rest / rest.norm(dim=1, keepdim=True)
    return torch.stack((first, second, torch.linalg.cross(first, second)), 1)


@program(normal(1 << 20, 3), normal(1 << 20, 3))
def rotation_about_an_axis(axis: Tensor, point: Tensor) -> Tensor:
    angle = torch.sqrt(axis.square().sum(-1, keepdim=True) + 1e-12)
    unit = axis / angle
    along = (unit * point).sum(-1, keepdim=True) * unit
    return along + (point - along) * angle.cos() + torch.linalg.cross(unit, point) * angle.sin()


@program(normal(32, 65536, 3), normal(32, 4, 4))
def points_seen_by_cameras(points: Tensor, camera: Tensor) -> tuple[Tensor, Tensor]:
    moved = (points[:, :, None, :] * camera[:, None, :3, :3]).sum(-1) + camera[:, None, :3, 3]
    depth = moved[..., 2].abs() + 0.1
    return moved[..., :2] / depth[..., None] * 500 + 320, depth


@program(normal(1 << 20, 3), normal(1 << 20, 3))
def rays_against_a_box(start: Tensor, direction: Tensor) -> tuple[Tensor, Tensor]:
    inverse = 1 / torch.where(direction.abs() < 1e-3, 1e-3, direction)
    low, high = (-1 - start) * inverse, (1 - start) * inverse
    return torch.minimum(low, high).amax(-1), torch.maximum(low, high).amin(-1)


@program(normal(1 << 19, 3), normal(1 << 19, 3), normal(3, 3))
def rays_against_a_triangle(start: Tensor, ray: Tensor, corners: Tensor) -> Tensor:
    one, two = corners[1] - corners[0], corners[2] - corners[0]
    across = torch.linalg.cross(ray, two.expand_as(ray))
    scale = (across * one).sum(-1)
    scale = scale / (scale.square() + 0.01)
    away = start - corners[0]
    along = torch.linalg.cross(away, one.expand_as(away))
    u, v, t = (away * across).sum(-1) * scale, (ray * along).sum(-1) * scale, (along * two).sum(-1) * scale
    return torch.stack((u, v, t))


@program(normal(1 << 20, 3), normal(1 << 20, 3))
def steps_towards_a_ring(start: Tensor, ray: Tensor) -> Tensor:
    ray = ray / ray.norm(dim=-1, keepdim=True)
    point = start
    for _ in range(6):
        flat = torch.sqrt(point[:, 0] ** 2 + point[:, 2] ** 2 + 1e-9) - 1
        distance = torch.sqrt(flat**2 + point[:, 1] ** 2 + 1e-9) - 0.3
        point = point + ray * distance[:, None]
    return point


@program(normal(1 << 20, 3))
def spherical_harmonics(direction: Tensor) -> Tensor:
    x, y, z = (direction / direction.norm(dim=-1, keepdim=True)).unbind(-1)
    xx, yy, zz = x * x, y * y, z * z
    first = [torch.full_like(x, 0.2821), -0.4886 * y, 0.4886 * z, -0.4886 * x]
    second = [1.0925 * x * y, -1.0925 * y * z, 0.3154 * (2 * zz - xx - yy), -1.0925 * x * z, 0.5463 * (xx - yy)]
    return torch.stack(first + second, -1)


@program(positive(16, 480, 640))
def normals_of_a_depth_image(depth: Tensor) -> Tensor:
    right = depth[:, 1:-1, 2:] - depth[:, 1:-1, :-2]
    down = depth[:, 2:, 1:-1] - depth[:, :-2, 1:-1]
    normal = torch.stack((-right, -down, torch.ones_like(right)), 1)
    return normal / normal.norm(dim=1, keepdim=True)


@program(normal(4, 2048, 3), normal(4, 2048, 3))
def nearest_points_both_ways(a: Tensor, b: Tensor) -> Tensor:
    squared = (a[:, :, None] - b[:, None]).square().sum(-1)
    return squared.amin(2).mean(1) + squared.amin(1).mean(1)


@program(normal(1024, 64), normal(1024, 64))
def manhattan_distances(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, None] - b).abs().sum(-1)


@program(normal(1 << 18, 3), index(1 << 19, 3, high=1 << 18))
def normals_and_areas_of_faces(corner: Tensor, face: Tensor) -> tuple[Tensor, Tensor]:
    a, b, c = corner[face[:, 0]], corner[face[:, 1]], corner[face[:, 2]]
    across = torch.linalg.cross(b - a, c - a)
    area = across.norm(dim=-1)
    return across / (area[:, None] + 1e-9), area / 2


@program(positive(16384, 192), uniform(16384, 192, 3), positive(16384, 192))
def colours_along_rays(density: Tensor, colour: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    alpha = 1 - torch.exp(-density * step)
    left = torch.cumprod(1 - alpha + 1e-10, -1)
    weight = alpha * torch.cat((torch.ones_like(left[:, :1]), left[:, :-1]), -1)
    return (weight[..., None] * colour).sum(1), weight.sum(-1)


@program(normal(1 << 20, 3, 3))
def inverses_of_three_by_three(m: Tensor) -> Tensor:
    rows = [torch.linalg.cross(m[:, (i + 1) % 3], m[:, (i + 2) % 3]) for i in range(3)]
    determinant = (m[:, 0] * rows[0]).sum(-1)
    return torch.stack(rows, -1) / (determinant.sign() * (determinant.abs() + 0.1))[:, None, None]


@program(normal(1 << 21, 2, dtype=F16))
def polar_coordinates(point: Tensor) -> Tensor:
    return torch.stack((point.norm(dim=-1), torch.atan2(point[:, 1], point[:, 0])), -1)


@program(normal(1 << 20, 3), uniform(3))
def distance_to_a_rounded_box(point: Tensor, half: Tensor) -> Tensor:
    away = point.abs() - half
    return away.clamp(min=0).norm(dim=-1) + away.amax(-1).clamp(max=0) - 0.1


@program(normal(12, 3))
def centred_corners(point: Tensor) -> Tensor:
    centred = point - point.mean(0)
    return centred / centred.norm(dim=-1).amax()
