"""The model suite: nineteen architectures of `transformers` and two classic nets forward, five trained for a step."""

from __future__ import annotations

from bench.models import classic, detection, language, vision
from bench.models.model import Model

_FORWARD = (
    vision.vit, vision.beit, vision.convnext, vision.resnet, vision.mobilenet_v1, vision.mobilenet_v2, vision.segformer,
    detection.detr, detection.conditional_detr, detection.owlvit, detection.maskformer, detection.mask2former,
    language.clip, language.bert, language.gpt2, language.llama, language.llama_block, language.t5, language.whisper,
    classic.alexnet, classic.squeezenet,
)  # fmt: skip
_TRAINED = (vision.vit, vision.resnet, language.bert, language.gpt2, language.llama)

#: By name: `gpt2` is the forward pass in evaluation mode, `gpt2_training` forward and backward in training mode.
MODELS: dict[str, Model] = {build.__name__: Model(build.__name__, build) for build in _FORWARD} | {
    f"{build.__name__}_training": Model(f"{build.__name__}_training", build, is_trained=True) for build in _TRAINED
}

#: Those whose times are raced at batch 1 and 32; `--cases raced` on the command line.
RACED = ("vit", "beit", "convnext", "resnet", "mobilenet_v2", "segformer", "detr", "bert", "llama_block")
