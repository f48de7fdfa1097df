"""Models of text, of text beside images, and of speech."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bench.models.model import Example, ModelSize, normal, tokens

#: Words in the vocabulary of a small model.
WORDS = 100


def bert(size: ModelSize) -> Example:
    from transformers import BertConfig, BertForMaskedLM

    small: dict[str, Any] = {
        "vocab_size": WORDS, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 128, "max_position_embeddings": 64,
    }  # fmt: skip
    no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(**(small if size == "small" else {}), **no_dropout)
    length = 32 if size == "small" else 512

    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        ids = tokens(config.vocab_size, (batch, length), generator)
        # The last quarter is padding.
        mask = (torch.arange(length, device=ids.device) < length - length // 4).long().expand(batch, -1).contiguous()
        return {"input_ids": ids, "attention_mask": mask}

    return Example(BertForMaskedLM(config), inputs)


def gpt2(size: ModelSize) -> Example:
    from transformers import GPT2Config, GPT2LMHeadModel

    small: dict[str, Any] = {
        "vocab_size": WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64,
        "bos_token_id": WORDS - 2, "eos_token_id": WORDS - 1,
    }  # fmt: skip
    no_dropout = {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
    config = GPT2Config(**(small if size == "small" else {}), **no_dropout, use_cache=False)
    return Example(GPT2LMHeadModel(config), _words(config.vocab_size, 32 if size == "small" else config.n_positions))


def llama(size: ModelSize) -> Example:
    """Full is the shape of the Llama with 1.2 billion parameters: the default one has 6.7 billion, and beside a copy in
    float64 there would be no room for its gradients."""
    from transformers import LlamaConfig, LlamaForCausalLM

    shapes: dict[ModelSize, dict[str, Any]] = {
        "small": {
            "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
        },
        "full": {
            "vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": True,
        },
    }  # fmt: skip
    config = LlamaConfig(**shapes[size], use_cache=False)
    return Example(LlamaForCausalLM(config), _words(config.vocab_size, 32 if size == "small" else 1024))


def llama_block(size: ModelSize) -> Example:
    """Two layers in the widths of the Llama with 7 billion parameters, and its vocabulary."""
    from transformers import LlamaConfig, LlamaForCausalLM

    small: dict[str, Any] = {
        "vocab_size": WORDS, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
    }  # fmt: skip
    config = LlamaConfig(**(small if size == "small" else {}), num_hidden_layers=2, use_cache=False)
    return Example(LlamaForCausalLM(config), _words(config.vocab_size, 32 if size == "small" else 512))


def t5(size: ModelSize) -> Example:
    from transformers import T5Config, T5ForConditionalGeneration

    small: dict[str, Any] = {
        "vocab_size": WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4
    }  # fmt: skip
    config = T5Config(**(small if size == "small" else {}), use_cache=False, decoder_start_token_id=0)
    read, written = (32, 16) if size == "small" else (512, 128)

    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        return {
            "input_ids": tokens(config.vocab_size, (batch, read), generator),
            "decoder_input_ids": tokens(config.vocab_size, (batch, written), generator),
        }

    return Example(T5ForConditionalGeneration(config), inputs)


def clip(size: ModelSize) -> Example:
    from transformers import CLIPConfig, CLIPModel

    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**layers, "vocab_size": WORDS, "max_position_embeddings": 32}
    special = {"bos_token_id": WORDS - 2, "eos_token_id": WORDS - 1, "pad_token_id": 0}
    small: dict[str, Any] = {
        "text_config": {**text, **special},
        "vision_config": {**layers, "image_size": 32, "patch_size": 8},
        "projection_dim": 32,
    }
    config = CLIPConfig(**(small if size == "small" else {}))

    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        side, length = config.vision_config.image_size, config.text_config.max_position_embeddings
        ids = tokens(config.text_config.vocab_size, (batch, length), generator)
        image = normal((batch, 3, side, side), generator)
        return {"pixel_values": image, "input_ids": ids, "attention_mask": torch.ones_like(ids)}

    return Example(CLIPModel(config), inputs)


def whisper(size: ModelSize) -> Example:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    small: dict[str, Any] = {
        "vocab_size": WORDS, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_source_positions": 50,
        "max_target_positions": 32, "num_mel_bins": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "decoder_start_token_id": 3,
    }  # fmt: skip
    config = WhisperConfig(**(small if size == "small" else {}), use_cache=False)

    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        frames = 2 * config.max_source_positions
        return {
            "input_features": normal((batch, config.num_mel_bins, frames), generator),
            "decoder_input_ids": tokens(config.vocab_size, (batch, config.max_target_positions // 2), generator),
        }

    return Example(WhisperForConditionalGeneration(config), inputs)


def _words(vocabulary: int, length: int) -> Any:
    def inputs(batch: int, generator: torch.Generator) -> dict[str, Tensor]:
        return {"input_ids": tokens(vocabulary, (batch, length), generator)}

    return inputs
