"""Chunks of any lengths are the whole."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from utterd.engine.runtimes.onnx_cpu import OnnxCpu
from utterd.engine.training.export import Networks
from utterd.engine.voices import small_frames
from utterd.engine.voices.package import VoicePackage
from utterd.engine.voices.small_stream import Decoder, Stream

FRAMES = 60


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def decoder(package: VoicePackage, networks: Networks) -> Iterator[Decoder]:
    graph = OnnxCpu().load(package.path("decode.onnx"), 1)
    yield Decoder(graph, networks.shape.encoder, networks.shape.decoder)
    graph.close()


@pytest.fixture(scope="module")
def hidden(networks: Networks) -> np.ndarray:
    rng = np.random.default_rng(5)
    return rng.standard_normal((6, networks.shape.encoder)).astype(np.float32)


@pytest.fixture(scope="module")
def frames() -> small_frames.Frames:
    ends = np.array([1, 12, 13, 13, 40, FRAMES])
    f0 = 150 + 60 * np.sin(np.arange(FRAMES) / 7)
    f0[20:31] = 9
    return small_frames.frames(ends, f0, np.full(FRAMES, 5.0))


@pytest.fixture(scope="module")
def whole(decoder: Decoder, hidden: np.ndarray, frames: small_frames.Frames) -> np.ndarray:
    samples = Stream(decoder, hidden, frames, never).take(FRAMES)
    assert samples.shape == (FRAMES * 300,)
    assert np.abs(samples).max() > 0.05
    return samples


@settings(max_examples=60, deadline=None, derandomize=True)
@given(plan=st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_every_chunk_plan_gives_the_whole(decoder, hidden, frames, whole, plan) -> None:
    stream = Stream(decoder, hidden, frames, never)
    chunks = [stream.take(size) for size in [*plan, FRAMES]]
    assert stream.done == stream.total == FRAMES
    np.testing.assert_allclose(np.concatenate(chunks), whole, atol=1e-4, rtol=0)


def test_the_graph_says_what_the_network_says(networks, hidden, frames, whole, decoder) -> None:
    before, after = decoder.halo + 1, decoder.halo + 2
    outside = np.concatenate([hidden, np.zeros((1, hidden.shape[1]), np.float32)])
    index = np.pad(frames.phoneme, (before, after), constant_values=len(hidden))
    noise = decoder.noise[np.arange(FRAMES + 3)]
    overlap, states = networks.acoustic.decoder.fresh(1, torch.device("cpu"))
    with torch.no_grad():
        samples, _, _ = networks.acoustic.decoder(
            torch.from_numpy(outside[index])[None],
            torch.from_numpy(np.pad(frames.features, ((before, after), (0, 0))))[None],
            torch.from_numpy(np.pad(frames.source, ((3, 3), (0, 0))))[None],
            torch.from_numpy(noise)[None],
            overlap,
            states,
        )
    # Its perceptrons have 8 bits.
    error = np.abs(samples[0].numpy() - whole)
    assert error.max() < 0.05 * np.abs(whole).max()


def test_a_sample_depends_on_nothing_beyond_the_halo(decoder, hidden, frames, whole) -> None:
    reach = decoder.halo + 2
    features = frames.features.copy()
    features[50:] = 0
    changed = small_frames.Frames(frames.phoneme, features, frames.source)
    samples = Stream(decoder, hidden, changed, never).take(FRAMES)
    safe = (50 - reach) * 300
    np.testing.assert_allclose(samples[:safe], whole[:safe], atol=1e-5, rtol=0)
    assert np.abs(samples[safe + 300 :] - whole[safe + 300 :]).max() > 1e-3
