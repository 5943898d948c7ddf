// Tensor names of a hybrid's checkpoint, of folders and of GGUF files as llama.cpp's converter
// writes them. Names of a layer stand behind the layer's, those of the head that drafts behind the
// head's.
#pragma once

namespace reckon::models {

struct HybridNames {
  // Behind the root, which may differ from file to file.
  const char* embedding;
  const char* final_norm;
  const char* layers;  // followed by the layer's number and "."
  const char* head;    // behind nothing

  const char* input_norm;
  const char* mlp_norm;
  // Attention.
  const char* q;
  const char* k;
  const char* v;
  const char* q_norm;
  const char* k_norm;
  const char* attention_out;
  // Delta nets.
  const char* qkv;
  const char* z;
  const char* b;
  const char* a;
  const char* qkvz;  // q, k, v and z in one, key head by key head
  const char* ba;    // b and a likewise
  const char* conv;
  const char* decay;
  const char* dt_bias;
  const char* delta_norm;
  const char* delta_out;
  // MLPs, those of shared experts apart.
  const char* gate;
  const char* up;
  const char* down;
  const char* shared_gate_matrix;
  const char* shared_up;
  const char* shared_down;
  const char* shared_weight;  // that a shared expert is weighed by
  const char* router;
  // Of all experts; where there is one tensor an expert, its number stands behind `expert`.
  const char* expert;
  const char* experts_gate;
  const char* experts_up;
  const char* experts_down;
  const char* experts_gate_up;      // gate before up, of each expert
  const char* experts_down_beside;  // the down of those
  // The head that drafts.
  const char* draft_join;
  const char* draft_embedding_norm;
  const char* draft_hidden_norm;
  const char* draft_norm;
};

inline constexpr HybridNames kHybridFolderNames{
    .embedding = "embed_tokens.weight",
    .final_norm = "norm.weight",
    .layers = "layers.",
    .head = "lm_head.weight",
    .input_norm = "input_layernorm.weight",
    .mlp_norm = "post_attention_layernorm.weight",
    .q = "self_attn.q_proj.weight",
    .k = "self_attn.k_proj.weight",
    .v = "self_attn.v_proj.weight",
    .q_norm = "self_attn.q_norm.weight",
    .k_norm = "self_attn.k_norm.weight",
    .attention_out = "self_attn.o_proj.weight",
    .qkv = "linear_attn.in_proj_qkv.weight",
    .z = "linear_attn.in_proj_z.weight",
    .b = "linear_attn.in_proj_b.weight",
    .a = "linear_attn.in_proj_a.weight",
    .qkvz = "linear_attn.in_proj_qkvz.weight",
    .ba = "linear_attn.in_proj_ba.weight",
    .conv = "linear_attn.conv1d.weight",
    .decay = "linear_attn.A_log",
    .dt_bias = "linear_attn.dt_bias",
    .delta_norm = "linear_attn.norm.weight",
    .delta_out = "linear_attn.out_proj.weight",
    .gate = "mlp.gate_proj.weight",
    .up = "mlp.up_proj.weight",
    .down = "mlp.down_proj.weight",
    .shared_gate_matrix = "mlp.shared_expert.gate_proj.weight",
    .shared_up = "mlp.shared_expert.up_proj.weight",
    .shared_down = "mlp.shared_expert.down_proj.weight",
    .shared_weight = "mlp.shared_expert_gate.weight",
    .router = "mlp.gate.weight",
    .expert = "mlp.experts.",
    .experts_gate = "mlp.experts.gate_proj.weight",
    .experts_up = "mlp.experts.up_proj.weight",
    .experts_down = "mlp.experts.down_proj.weight",
    .experts_gate_up = "mlp.experts.gate_up_proj",
    .experts_down_beside = "mlp.experts.down_proj",
    .draft_join = "fc.weight",
    .draft_embedding_norm = "pre_fc_norm_embedding.weight",
    .draft_hidden_norm = "pre_fc_norm_hidden.weight",
    .draft_norm = "norm.weight",
};

inline constexpr HybridNames kHybridGgufNames{
    .embedding = "token_embd.weight",
    .final_norm = "output_norm.weight",
    .layers = "blk.",
    .head = "output.weight",
    .input_norm = "attn_norm.weight",
    .mlp_norm = "post_attention_norm.weight",
    .q = "attn_q.weight",
    .k = "attn_k.weight",
    .v = "attn_v.weight",
    .q_norm = "attn_q_norm.weight",
    .k_norm = "attn_k_norm.weight",
    .attention_out = "attn_output.weight",
    .qkv = "attn_qkv.weight",
    .z = "attn_gate.weight",
    .b = "ssm_beta.weight",
    .a = "ssm_alpha.weight",
    .qkvz = "ssm_in.weight",
    .ba = "ssm_ba.weight",
    .conv = "ssm_conv1d.weight",
    .decay = "ssm_a",
    .dt_bias = "ssm_dt.bias",
    .delta_norm = "ssm_norm.weight",
    .delta_out = "ssm_out.weight",
    .gate = "ffn_gate.weight",
    .up = "ffn_up.weight",
    .down = "ffn_down.weight",
    .shared_gate_matrix = "ffn_gate_shexp.weight",
    .shared_up = "ffn_up_shexp.weight",
    .shared_down = "ffn_down_shexp.weight",
    .shared_weight = "ffn_gate_inp_shexp.weight",
    .router = "ffn_gate_inp.weight",
    .expert = nullptr,
    .experts_gate = "ffn_gate_exps.weight",
    .experts_up = "ffn_up_exps.weight",
    .experts_down = "ffn_down_exps.weight",
    .experts_gate_up = "ffn_gate_up_exps.weight",
    .experts_down_beside = "ffn_down_exps.weight",
    .draft_join = "nextn.eh_proj.weight",
    .draft_embedding_norm = "nextn.enorm.weight",
    .draft_hidden_norm = "nextn.hnorm.weight",
    .draft_norm = "nextn.shared_head_norm.weight",
};

}  // namespace reckon::models
