"""Right and wrong answers to the exercises of lesson 08: what a class hands in."""

import numpy as np
import torch


def sr(T, gamma):
    return np.linalg.inv(np.eye(len(T)) - gamma * T)


def features_by_rounds(T, gamma, Phi):
    psi = np.zeros_like(Phi)
    for _ in range(2_000):
        psi = Phi + gamma * T @ psi
    return psi


def error(phi, psi, psi_next, ended, gamma):
    return phi + gamma * psi_next * ~ended[:, None] - psi


def error_row_by_row(phi, psi, psi_next, ended, gamma):
    rows = []
    for k, over in enumerate(ended):
        target = phi[k] if over else phi[k] + gamma * psi_next[k]
        rows.append(target - psi[k])
    return rows


def error_without_mask(phi, psi, psi_next, ended, gamma):
    return phi + gamma * psi_next - psi


def step(W, W_old, phi, phi_next, gamma, step_size):
    d = phi + gamma * W_old @ phi_next - W @ phi
    return W + 2 * step_size * np.outer(d, phi)


def step_by_torch(W, W_old, phi, phi_next, gamma, step_size, stopped=True, live=False):
    """The same by autograd; without the stop the target carries a gradient too."""
    weights = torch.tensor(W, requires_grad=True)
    s, s_next = torch.tensor(phi), torch.tensor(phi_next)
    target = s + gamma * (weights if live else torch.tensor(W_old)) @ s_next
    ((target.detach() if stopped else target) - weights @ s).square().sum().backward()
    return (weights - step_size * weights.grad).detach().numpy()


def step_with_gradient(W, W_old, phi, phi_next, gamma, step_size):
    """Whoever forgets .detach().numpy() has still done the step."""
    weights = torch.tensor(W, requires_grad=True)
    target = torch.tensor(phi + gamma * W_old @ phi_next)
    (target - weights @ torch.tensor(phi)).square().sum().backward()
    return weights - step_size * weights.grad


def step_live(*arguments):
    return step_by_torch(*arguments, live=True)


def step_through(*arguments):
    return step_by_torch(*arguments, stopped=False, live=True)


def step_at_next(W, W_old, phi, phi_next, gamma, step_size):
    d = phi + gamma * W_old @ phi_next - W @ phi
    return W + 2 * step_size * np.outer(d, phi_next)


def changed(change):
    """A wrong step from the right change: change(W, right change, arguments)."""

    def answer(W, *rest):
        return change(W, step(W, *rest) - W, rest)

    return answer


def centred(psi):
    return psi - psi.mean(axis=0)


def directions(psi, k):
    return np.linalg.svd(centred(psi), full_matrices=False)[2][:k].T


def by_covariance(psi, k):
    return np.linalg.eigh(np.cov(psi.T))[1][:, ::-1][:, :k]


def left(psi, k):
    return np.linalg.svd(centred(psi))[0][:, :k]


RIGHT = {
    "successor_features": [lambda T, gamma, Phi: sr(T, gamma) @ Phi, features_by_rounds],
    "sr_error": [error, error_row_by_row],
    "sr_step": [step, step_by_torch, step_with_gradient],
    "blind": [lambda c, gamma: (c @ c, c / (1 - gamma)), lambda c, gamma: [(c**2).sum(), list(c / (1 - gamma))]],
    "feature_directions": [directions, by_covariance, lambda psi, k: -directions(psi, k)],
}

WRONG = {
    "successor_features": [
        (lambda T, gamma, Phi: Phi @ sr(T, gamma), "order"),
        (lambda T, gamma, Phi: sr(T, gamma).T @ Phi, "transposed"),
        (lambda T, gamma, Phi: sr(T, gamma), "Ψ alone"),
        (lambda T, gamma, Phi: gamma * T @ sr(T, gamma) @ Phi, "features now"),
        (lambda T, gamma, Phi: gamma * sr(T, gamma) @ Phi, "γ on everything"),
        (lambda T, gamma, Phi: Phi + gamma * T @ Phi, "one step"),
        (lambda T, gamma, Phi: (1 - gamma) * sr(T, gamma) @ Phi, "an average"),
        (lambda T, gamma, Phi: sr(T, 1) @ Phi, "no γ"),
        (lambda T, gamma, Phi: features_by_rounds(T, 1, Phi), "no γ"),
        (lambda T, gamma, Phi: sr(T, gamma) @ Phi + Phi, "else"),
        (lambda T, gamma, Phi: sr(T, gamma) @ Phi[:, 0], "shape"),
        (lambda T, gamma: T, "raised"),
    ],
    "sr_error": [
        (error_without_mask, "no mask"),
        (lambda phi, psi, psi_next, ended, gamma: phi + gamma * psi_next * ended[:, None] - psi, "reversed"),
        (
            lambda phi, psi, psi_next, ended, gamma: (phi + gamma * psi_next) * ~ended[:, None] - psi,
            "φ(s) masked too",
        ),
        (lambda phi, psi, psi_next, ended, gamma: phi + gamma * psi_next * ~ended - psi, "along the features"),
        (lambda phi, psi, psi_next, ended, gamma: error(gamma * phi, psi, psi_next, ended, 1), "γ on the wrong term"),
        (lambda phi, psi, psi_next, ended, gamma: error(phi, psi, psi_next, ended, 1), "no γ"),
        (lambda phi, psi, psi_next, ended, gamma: error(0 * phi, psi, psi_next, ended, gamma), "no features"),
        (lambda phi, psi, psi_next, ended, gamma: error(phi, psi_next, psi, ended, gamma), "s and s′ swapped"),
        (lambda phi, psi, psi_next, ended, gamma: error(phi, psi, psi, ended, gamma), "s and s′ swapped"),
        (lambda phi, psi, psi_next, ended, gamma: error(phi, 0 * psi, psi_next, ended, gamma), "target only"),
        (lambda *arguments: -error(*arguments), "sign"),
        (lambda *arguments: error(*arguments) ** 2, "squared"),
        (lambda phi, psi, *rest: error(phi + 1, psi, *rest), "moves at the truth"),
        (lambda *arguments: 2 * error(*arguments), "else"),
        (lambda *arguments: error(*arguments).sum(axis=1), "shape"),
    ],
    "sr_step": [
        (step_live, "its own tail"),
        (step_through, "through the target"),
        (step_at_next, "at s′"),
        (changed(lambda W, by, rest: W - by), "uphill"),
        (changed(lambda W, by, rest: W + by / 2), "half"),
        (changed(lambda W, by, rest: W + by / len(W)), "averaged"),
        (changed(lambda W, by, rest: W + by.T), "transposed"),
        (changed(lambda W, by, rest: by), "only the change"),
        (changed(lambda W, by, rest: W + by / rest[-1]), "jumped"),
        (changed(lambda W, by, rest: W + 3 * by), "else"),
        (lambda W, *rest: step(W, *rest)[0], "shape"),
    ],
    "blind": [
        (lambda c, gamma: c / (1 - gamma), "a pair"),
        (lambda c, gamma: (np.linalg.norm(c), c / (1 - gamma)), "loss, not squared"),
        (lambda c, gamma: ((c**2).mean(), c / (1 - gamma)), "loss, averaged"),
        (lambda c, gamma: (0, c / (1 - gamma)), "loss, zero"),
        (lambda c, gamma: (gamma**2 * c @ c, c / (1 - gamma)), "loss"),
        (lambda c, gamma: (c @ c, c), "ψ, no future"),
        (lambda c, gamma: (c @ c, gamma * c / (1 - gamma)), "ψ, no present"),
        (lambda c, gamma: (c @ c, c * (1 - gamma)), "ψ, upside down"),
        (lambda c, gamma: (c @ c, 0 * c), "ψ, zero"),
        (lambda c, gamma: (c @ c, c / gamma), "ψ"),
        (lambda c, gamma: (c**2, c / (1 - gamma)), "shape"),
    ],
    "feature_directions": [
        (left, "left"),
        (lambda psi, k: left(psi, k) if psi.shape[0] != psi.shape[1] else directions(psi, k), "left"),
        (lambda psi, k: np.linalg.svd(psi)[2][:k].T, "not centred"),
        (lambda psi, k: np.linalg.svd(psi - psi.mean(axis=1)[:, None])[2][:k].T, "wrong mean"),
        (lambda psi, k: np.linalg.eigh(np.cov(psi.T))[1][:, :k], "smallest"),
        (lambda psi, k: directions(psi, k)[:, ::-1], "backwards"),
        (lambda psi, k: np.linalg.svd(centred(psi))[2][:, :k], "not transposed"),
        (lambda psi, k: directions(psi, k).T, "lying down"),
        (lambda psi, k: 3 * directions(psi, k), "length"),
        (lambda psi, k: np.eye(psi.shape[1])[:, :k], "else"),
        (lambda psi, k: directions(psi, k + 1), "shape"),
    ],
}
