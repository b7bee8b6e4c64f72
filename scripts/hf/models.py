"""The tiny models: one configuration of transformers each, with a tokenizer and the type of its weights."""

from transformers import (
    CohereConfig,
    Cohere2Config,
    GPT2Config,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GraniteConfig,
    GraniteMoeConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    Olmo3Config,
    Phi3Config,
    Qwen2Config,
    Qwen2MoeConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    SmolLM3Config,
    StableLmConfig,
)

SIZE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
SIZE |= dict(max_position_embeddings=256)
EXPERTS = SIZE | dict(num_hidden_layers=2)


def llama3_rope(**more):
    return dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=8192) | more


# name: (configuration, vocabulary, type, further options)
CASES = {
    "llama-f32": (LlamaConfig(**SIZE, tie_word_embeddings=False), "smollm", "float32", {}),
    "llama-bf16-tied-sharded": (
        LlamaConfig(**SIZE, tie_word_embeddings=True, attention_bias=True, mlp_bias=True, rope_parameters=llama3_rope()),
        "llama-bpe", "bfloat16", {"shard": "30KB"}),
    "llama-f16-spm": (LlamaConfig(**SIZE | dict(num_key_value_heads=4), head_dim=16), "spm", "float16", {}),
    "mistral-f32-no-spm-file": (MistralConfig(**SIZE, sliding_window=None), "spm-json", "float32", {"room": 0}),
    "mixtral-bf16": (MixtralConfig(**EXPERTS, num_local_experts=4, num_experts_per_tok=2), "tekken", "bfloat16", {}),
    "qwen2-f32": (Qwen2Config(**SIZE, rope_parameters=dict(rope_type="default", rope_theta=1e6)), "qwen2", "float32", {}),
    "qwen2-bf16-tied-yarn": (
        Qwen2Config(**SIZE, tie_word_embeddings=True, rope_parameters=dict(
            rope_type="yarn", rope_theta=1e6, factor=4.0, original_max_position_embeddings=64)), "qwen2", "bfloat16", {}),
    "qwen3-f32": (Qwen3Config(**SIZE, head_dim=16, tie_word_embeddings=True), "qwen2", "float32", {}),
    "qwen2moe-f32": (
        Qwen2MoeConfig(**EXPERTS, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24,
                       shared_expert_intermediate_size=40, decoder_sparse_step=1), "qwen2", "float32", {}),
    "qwen3moe-bf16": (
        Qwen3MoeConfig(**EXPERTS, head_dim=16, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24,
                       norm_topk_prob=True, decoder_sparse_step=1), "qwen2", "bfloat16", {}),
    "gemma-f32": (GemmaConfig(**SIZE, head_dim=16), "gemma", "float32", {}),
    "gemma2-f32": (Gemma2Config(**SIZE, head_dim=16, query_pre_attn_scalar=16, sliding_window=8), "gemma", "float32", {}),
    "gemma3-f32": (
        Gemma3TextConfig(**SIZE | dict(num_hidden_layers=7), head_dim=16, query_pre_attn_scalar=16, sliding_window=8), "gemma",
        "float32", {}),
    "gemma3-bf16-no-spm-file": (
        Gemma3TextConfig(**SIZE | dict(num_hidden_layers=6), head_dim=16, query_pre_attn_scalar=16, sliding_window=8),
        "gemma-json", "bfloat16", {"room": 6}),
    "phi-f32": (Phi3Config(**SIZE, sliding_window=None, pad_token_id=0), "spm", "float32", {}),
    "phi-longrope": (
        Phi3Config(**SIZE | dict(max_position_embeddings=1024), sliding_window=None, original_max_position_embeddings=256,
                   pad_token_id=0, rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=256,
            short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 1.5, 2.0, 3.0])), "spm", "float32", {}),
    "granite-f32": (
        GraniteConfig(**SIZE, embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.5, logits_scaling=2.0),
        "smollm", "float32", {}),
    "olmo2-f32": (Olmo2Config(**SIZE), "dbrx", "float32", {}),
    "olmo3-f32": (Olmo3Config(**SIZE | dict(num_hidden_layers=4), sliding_window=8), "dbrx", "float32", {}),
    "stablelm-f32": (
        StableLmConfig(**SIZE, use_qkv_bias=True, rope_parameters=dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)), "qwen2", "float32", {}),
    "stablelm-head-norms": (
        StableLmConfig(**SIZE, qk_layernorm=True, use_parallel_residual=True, rope_parameters=dict(
            rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25)), "qwen2", "float32", {}),
    "gpt2-f32": (GPT2Config(n_embd=32, n_head=4, n_layer=2, n_positions=256, n_ctx=256), "gpt-2", "float32", {}),
    "command-r-f32": (CohereConfig(**SIZE, logit_scale=0.25), "smollm", "float32", {}),
    "cohere2-f32": (
        Cohere2Config(**SIZE | dict(num_hidden_layers=4), logit_scale=0.25, sliding_window=8, rotary_pct=1.0), "smollm", "float32", {}),
    "smollm3-f32": (
        SmolLM3Config(**SIZE | dict(num_hidden_layers=4), no_rope_layers=[1, 1, 1, 0], tie_word_embeddings=True, pad_token_id=0),
        "llama-bpe", "float32", {}),
    "granitemoe-f32": (
        GraniteMoeConfig(**EXPERTS, num_local_experts=4, num_experts_per_tok=2, embedding_multiplier=3.0,
                         attention_multiplier=0.3, residual_multiplier=0.5, logits_scaling=2.0), "smollm", "float32", {}),
}
