"""Detectors, and segmenters that ask queries of an image.

Their backbones are those of `transformers` itself, so that no other library of models is needed. MaskFormer and
Mask2Former are the models without the loss on top, which needs scipy.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bench.models.model import Example, ModelSize, normal, pixels, tokens

SMALL_QUERIES: dict[str, Any] = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 10,
}  # fmt: skip
SMALL_SWIN: dict[str, Any] = {"embed_dim": 16, "depths": [2, 2, 2, 2], "num_heads": [1, 2, 4, 8], "window_size": 4}
#: The words of a query of OWL-ViT, and queries for each image.
WORDS, QUERIES = 16, 2


def detr(size: ModelSize) -> Example:
    from transformers import DetrConfig, DetrForObjectDetection

    return Example(DetrForObjectDetection(DetrConfig(**_queries(size), num_labels=10)), _image(size, 800))


def conditional_detr(size: ModelSize) -> Example:
    from transformers import ConditionalDetrConfig, ConditionalDetrForObjectDetection

    config = ConditionalDetrConfig(**_queries(size), num_labels=10)
    return Example(ConditionalDetrForObjectDetection(config), _image(size, 800))


def owlvit(size: ModelSize) -> Example:
    from transformers import OwlViTConfig, OwlViTForObjectDetection

    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    small: dict[str, Any] = {
        "text_config": {**layers, "vocab_size": 100, "bos_token_id": 98, "eos_token_id": 99},
        "vision_config": {**layers, "image_size": 32, "patch_size": 8},
        "projection_dim": 32,
    }
    config = OwlViTConfig(**(small if size == "small" else {}))

    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        side = config.vision_config.image_size
        ids = tokens(config.text_config.vocab_size, (batch * QUERIES, WORDS), generator)
        image = normal((batch, 3, side, side), generator)
        return {"pixel_values": image, "input_ids": ids, "attention_mask": torch.ones_like(ids)}

    return Example(OwlViTForObjectDetection(config), inputs)


def maskformer(size: ModelSize) -> Example:
    from transformers import MaskFormerConfig, MaskFormerModel, SwinConfig

    stages = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
    if size == "small":
        backbone, decoder = SwinConfig(**SMALL_SWIN, **stages), _detr_config(size)
        config = MaskFormerConfig(
            backbone_config=backbone, decoder_config=decoder, fpn_feature_size=32, mask_feature_size=32
        )
    else:
        config = MaskFormerConfig(backbone_config=SwinConfig(**stages), decoder_config=_detr_config(size))
    return Example(MaskFormerModel(config), _image(size, 384))


def mask2former(size: ModelSize) -> Example:
    from transformers import Mask2FormerConfig, Mask2FormerModel, SwinConfig

    if size == "full":
        return Example(Mask2FormerModel(Mask2FormerConfig()), _image(size, 384))
    config = Mask2FormerConfig(
        backbone_config=SwinConfig(**SMALL_SWIN, out_features=["stage1", "stage2", "stage3", "stage4"]),
        feature_size=32, mask_feature_size=32, hidden_dim=32, encoder_feedforward_dim=64, dim_feedforward=64,
        encoder_layers=1, decoder_layers=3, num_attention_heads=4, num_queries=10,
    )  # fmt: skip
    return Example(Mask2FormerModel(config), _image(size, 384))


def _image(size: ModelSize, full: int) -> Any:
    return pixels(64 if size == "small" else full)


def _backbone(size: ModelSize) -> dict[str, Any]:
    from transformers import ResNetConfig

    small = {"embedding_size": 16, "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]}
    stages = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
    config = ResNetConfig(**(small if size == "small" else {}), **stages)
    return {"use_timm_backbone": False, "use_pretrained_backbone": False, "backbone_config": config}


def _queries(size: ModelSize) -> dict[str, Any]:
    return {**_backbone(size), **(SMALL_QUERIES if size == "small" else {})}


def _detr_config(size: ModelSize) -> Any:
    from transformers import DetrConfig

    return DetrConfig(**_queries(size))
