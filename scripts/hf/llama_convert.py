"""Runs llama.cpp's own converter on a folder whose vocabulary it has never seen: the name of the pre-tokenizer, which it
would look up by a digest of token ids, is given.

    llama_convert.py SOURCE PRE FOLDER [options of convert_hf_to_gguf.py]
"""

import os
import runpy
import sys

source, pre = sys.argv[1:3]
sys.argv = [os.path.join(source, "convert_hf_to_gguf.py"), *sys.argv[3:]]
sys.path.insert(0, source)

from conversion.base import TextModel

if pre != "-":
    TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
runpy.run_path(sys.argv[0], run_name="__main__")
