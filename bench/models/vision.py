"""Classifiers and segmenters of images."""

from __future__ import annotations

from typing import Any

from bench.models.model import Example, ModelSize, pixels

#: A transformer of two layers over 16 patches.
SMALL_TRANSFORMER: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def vit(size: ModelSize) -> Example:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(**(SMALL_TRANSFORMER if size == "small" else {}), **NO_DROPOUT, num_labels=10)
    return Example(ViTForImageClassification(config), pixels(config.image_size))


def beit(size: ModelSize) -> Example:
    from transformers import BeitConfig, BeitForImageClassification

    small = SMALL_TRANSFORMER if size == "small" else {}
    config = BeitConfig(**small, use_relative_position_bias=True, num_labels=10)
    return Example(BeitForImageClassification(config), pixels(config.image_size))


def convnext(size: ModelSize) -> Example:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    small = {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 2, 1]} if size == "small" else {}
    return Example(ConvNextForImageClassification(ConvNextConfig(**small, num_labels=10)), _square(size))


def resnet(size: ModelSize) -> Example:
    from transformers import ResNetConfig, ResNetForImageClassification

    small = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 2, 1]} if size == "small" else {}
    return Example(ResNetForImageClassification(ResNetConfig(**small, num_labels=10)), _square(size))


def mobilenet_v1(size: ModelSize) -> Example:
    from transformers import MobileNetV1Config, MobileNetV1ForImageClassification

    small = {"depth_multiplier": 0.25} if size == "small" else {}
    return Example(MobileNetV1ForImageClassification(MobileNetV1Config(**small, num_labels=10)), _square(size))


def mobilenet_v2(size: ModelSize) -> Example:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    small = {"depth_multiplier": 0.25} if size == "small" else {}
    return Example(MobileNetV2ForImageClassification(MobileNetV2Config(**small, num_labels=10)), _square(size))


def segformer(size: ModelSize) -> Example:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    small: dict[str, Any] = {
        "hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
        "decoder_hidden_size": 32,
    }  # fmt: skip
    config = SegformerConfig(**(small if size == "small" else {}), num_labels=10)
    return Example(SegformerForSemanticSegmentation(config), pixels(64 if size == "small" else 512))


def _square(size: ModelSize) -> Any:
    return pixels(64 if size == "small" else 224)
