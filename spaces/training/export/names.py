"""The arguments that each framework takes, by the versions that were looked at.

- Megatron-LM: ``megatron/training/arguments.py`` at commit 000c4ac24f61159c138b0975def722c65245983c, where
  ``allow_abbrev`` is off, so that a name counts only as it is spelled.
- torchtitan: ``torchtitan/config/job_config.py`` at commit 6404b932421f5ce382e7dac5ad381b2c17b1373c.
- DeepSpeed: ``docs/_pages/config-json.md`` at commit 00376da49967bc6a15d70a550200ac67277b1fb4, and the launcher's and
  Megatron-DeepSpeed's arguments (``megatron/arguments.py`` at commit f1feb8877d760b4ceaa0551debbf1cb4026fc9be).
"""

from __future__ import annotations

__all__ = [
    "DEEPSPEED",
    "DEEPSPEED_LAUNCHER",
    "MEGATRON",
    "MEGATRON_COSTLY",
    "MEGATRON_GONE",
    "MEGATRON_MANY",
    "MEGATRON_SWITCHES",
    "MEGATRON_VALUES",
    "TORCHRUN",
    "TORCHTITAN",
]

MEGATRON_SWITCHES = frozenset(
    """
    account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split add-qkv-bias bf16 disable-bias-linear
    fp16 group-query-attention moe-layer-recompute moe-pad-expert-input-to-capacity multi-latent-attention
    optimizer-cpu-offload overlap-grad-reduce overlap-param-gather qk-layernorm quick-geglu recompute-activations
    sequence-parallel squared-relu swiglu tp-comm-overlap untie-embeddings-and-output-weights
    use-distributed-optimizer use-megatron-fsdp use-precision-aware-optimizer use-rotary-position-embeddings
    use-tp-pp-dp-mapping
    """.split()
)
"""Switches that have an influence on a plan's cost and are understood."""

MEGATRON_VALUES = frozenset(
    """
    attention-backend attention-dropout context-parallel-size data-parallel-sharding-strategy decoder-first-pipeline-num-layers
    decoder-last-pipeline-num-layers expert-model-parallel-size expert-tensor-parallel-size ffn-hidden-size fp4-format
    fp8-format fp8-recipe global-batch-size hidden-dropout hidden-size kv-channels kv-lora-rank
    max-position-embeddings micro-batch-size microbatch-group-size-per-virtual-pipeline-stage
    moe-expert-capacity-factor moe-ffn-hidden-size moe-layer-freq moe-router-topk moe-shared-expert-intermediate-size
    normalization num-attention-heads num-experts num-layers num-layers-per-virtual-pipeline-stage num-query-groups
    num-virtual-stages-per-pipeline-rank optimizer pipeline-model-parallel-size position-embedding-type q-lora-rank
    qk-head-dim qk-pos-emb-head-dim recompute-granularity recompute-method recompute-num-layers seq-length softmax-type
    tensor-model-parallel-size v-head-dim vocab-size window-attn-skip-freq window-size
    """.split()
)
"""Arguments with one value that have an influence on a plan's cost and are understood."""

MEGATRON_MANY = frozenset("cp-comm-type recompute-modules".split())
"""Arguments with several values that are understood."""

MEGATRON_COSTLY = {
    "cpu-offloading-num-layers": "activations in host memory",
    "decoder-num-layers": "an encoder-decoder model",
    "decoder-seq-length": "an encoder-decoder model",
    "distribute-saved-activations": "recomputed activations that are divided over the tensor parallel group",
    "encoder-num-layers": "an encoder-decoder model",
    "encoder-seq-length": "an encoder-decoder model",
    "exp-avg-dtype": "optimizer state in another type",
    "exp-avg-sq-dtype": "optimizer state in another type",
    "first-last-layers-bf16": "layers in another precision",
    "fp32-residual-connection": "residuals in fp32",
    "fp4-param-gather": "parameters kept in fp4",
    "fp8-param-gather": "parameters kept in fp8",
    "grad-reduce-in-bf16": "gradients that are reduced in bf16",
    "heterogeneous-layers-config-encoded-json": "layers of different kinds",
    "heterogeneous-layers-config-path": "layers of different kinds",
    "hierarchical-context-parallel-sizes": "context parallelism on two levels",
    "hybrid-attention-ratio": "layers that are not transformer layers",
    "hybrid-mlp-ratio": "layers that are not transformer layers",
    "hybrid-override-pattern": "layers that are not transformer layers",
    "is-hybrid-model": "layers that are not transformer layers",
    "main-grads-dtype": "gradients in another type",
    "main-params-dtype": "master weights in another type",
    "moe-extended-tp": "tensor parallelism of the experts over another group",
    "moe-shared-expert-overlap": "shared experts that run beside the dispatch",
    "mtp-num-layers": "layers that predict further tokens",
    "num-distributed-optimizer-instances": "optimizer state that is divided over a part of the group",
    "optimizer-offload-fraction": "a part of the optimizer's state in host memory",
    "overlap-moe-expert-parallel-comm": "expert traffic beside another micro-batch",
    "pipeline-model-parallel-layout": "a pipeline layout of its own",
    "retro-add-retriever": "a retrieval model",
    "spec": "layers of its own",
    "use-checkpoint-args": "arguments that stand in a checkpoint",
    "use-mp-args-from-checkpoint-args": "arguments that stand in a checkpoint",
    "use-torch-fsdp2": "PyTorch's FSDP2 inside Megatron",
    "yaml-cfg": "arguments that stand in another file",
}
"""Arguments that change a plan's cost in a way that the cost model does not know, and what they ask for."""

MEGATRON_GONE = {
    "batch-size": "micro-batch-size",
    "checkpoint-activations": "recompute-activations",
    "model-parallel-size": "tensor-model-parallel-size",
    "warmup": "lr-warmup-fraction",
}
"""Arguments that Megatron refuses, and what it takes instead."""

_MEGATRON_OTHERS = frozenset(
    """
    accumulate-allreduce-grads-in-fp32 activation-func-clamp-value adam-beta1 adam-beta2 adam-eps adlr-autoresume
    adlr-autoresume-interval allow-ambiguous-pad-tokens app-tag-run-name app-tag-run-version apply-layernorm-1p
    apply-query-key-layer-scaling apply-residual-connection-post-layernorm async-save
    attention-softmax-in-fp32 auto-detect-ckpt-format cache-mla-latents calc-ft-timeouts calculate-per-token-loss
    check-for-large-grads check-for-spiky-loss check-weight-hash-across-dp-replicas-interval
    ckpt-assume-constant-structure ckpt-convert-format ckpt-convert-save ckpt-format ckpt-fully-parallel-load
    ckpt-fully-parallel-save ckpt-step clip-grad config-logger-dir cross-entropy-fusion-impl
    cross-entropy-loss-fusion cuda-graph-impl cuda-graph-scope cuda-graph-warmup-steps data-args-path data-cache-path
    data-parallel-random-init data-path dataloader-type ddp-average-in-collective ddp-bucket-size ddp-num-buckets
    ddp-pad-buckets-for-high-nccl-busbw ddp-reduce-scatter-with-fp32-accumulation decoupled-lr decoupled-min-lr
    decrease-batch-size-if-needed defer-embedding-wgrad-compute delay-wgrad-compute deterministic-mode
    disable-bf16-reduced-precision-matmul disable-gloo-process-groups disable-msc disable-symmetric-registration
    disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs
    disable-tp-comm-split-ag disable-tp-comm-split-rs dist-ckpt-format dist-ckpt-optim-fully-reshardable
    dist-ckpt-strictness distrib-optim-fully-reshardable-mem-efficient distributed-backend distributed-timeout-minutes
    distributed-timeout-seconds-after-init embedding-init-method-std empty-unused-memory-level enable-cuda-graph
    enable-experimental enable-ft-package enable-full-sharding-in-hsdp end-weight-decay eod-mask-loss
    error-injection-rate error-injection-type eval-interval eval-iters exit-duration-in-mins exit-interval
    exit-on-missing-checkpoint exit-signal-handler external-cuda-graph finetune fp16-lm-cross-entropy fp4-recipe
    fp8-amax-compute-algo fp8-amax-history-len fp8-interval fp8-margin fsdp-double-buffer full-validation
    glu-linear-offset high-priority-stream-groups hysteresis init-method-std init-method-xavier-uniform
    init-model-with-meta-device initial-loss-scale iterations-to-skip keep-fp8-transpose-cache legacy-tokenizer load
    load-main-params-from-ckpt local-rank log-energy log-interval log-memory-to-tensorboard log-num-zeros-in-grad
    log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard
    log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logging-level loss-scale loss-scale-window lr
    lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction lr-warmup-init lr-warmup-iters
    lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples lr-wsd-decay-style make-vocab-size-divisible-by
    manual-gc manual-gc-interval memory-snapshot-path merge-file mid-level-dataset-surplus min-loss-scale min-lr
    mock-data moe-apply-probs-on-input moe-aux-loss-coeff moe-deepep-num-sms moe-enable-deepep moe-grouped-gemm
    moe-input-jitter-eps moe-per-layer-logging moe-permute-fusion moe-router-bias-update-rate moe-router-dtype
    moe-router-enable-expert-bias moe-router-force-load-balancing moe-router-fusion moe-router-group-topk
    moe-router-load-balancing-type moe-router-num-groups moe-router-padding-for-fp8 moe-router-pre-softmax
    moe-router-score-function moe-router-topk-scaling-factor moe-token-dispatcher-type moe-token-drop-policy
    moe-upcycling-granularity moe-use-legacy-grouped-gemm moe-use-upcycling moe-z-loss-coeff mrope-section mscale
    mscale-all-dim mtp-loss-scaling-factor multiple-validation-sets muon-momentum nccl-communicator-config-path
    no-align-grad-reduce no-align-param-gather no-async-tensor-model-parallel-allreduce
    no-barrier-with-level-1-timing no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
    no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-clone-scatter-output-in-embedding
    no-create-attention-mask-in-dataloader no-fp8-wgrad no-gradient-accumulation-fusion
    no-gradient-reduce-div-fusion no-initialization no-load-optim no-load-rng no-log-loss-scale-to-tensorboard
    no-manual-gc-eval no-masked-softmax-fusion no-mmap-bin-files no-one-logger no-overlap-p2p-communication
    no-persist-layer-norm no-pin-cpu-grads no-pin-cpu-params no-position-embedding no-rope-freq no-rope-fusion
    no-save-optim no-save-rng no-scatter-gather-tensors-in-pipeline no-use-tokenizer-model-from-checkpoint-args
    non-persistent-ckpt-type non-persistent-save-interval norm-epsilon num-dataset-builder-threads
    num-layers-at-end-in-bf16 num-layers-at-start-in-bf16 num-workers one-logger-async one-logger-project
    one-logger-run-name onnx-safe openai-gelu overlap-cpu-optimizer-d2h-h2d overlap-p2p-communication-warmup-flush
    overlap-param-gather-with-optimizer-step override-opt-param-scheduler override-opt_param-scheduler
    padded-vocab-size per-split-data-args-path perform-rl-step persistent-save-interval
    pipeline-model-parallel-comm-backend pretrained-checkpoint profile profile-ranks profile-step-end
    profile-step-start qk-l2-norm rampup-batch-size record-memory-history replication replication-factor
    replication-jump rerun-mode reset-attention-mask reset-position-ids reuse-grad-buf-for-mxfp8-param-ag
    rope-scaling-factor rope-type rotary-base rotary-interleaved rotary-percent rotary-scaling-factor
    rotary-seq-len-interpolation-factor sample-rate save save-interval save-retain-interval seed sft sgd-momentum
    sharp-enabled-group skip-train split start-weight-decay straggler-minmax-count suggested-communication-unit-size
    te-rng-tracker tensorboard-dir tensorboard-log-interval tensorboard-queue-size test-data-path test-mode
    tiktoken-num-special-tokens tiktoken-pattern tiktoken-special-tokens timing-log-level timing-log-option
    tokenizer-metadata tokenizer-model tokenizer-type torch-fsdp2-no-reshard-after-forward tp-comm-bootstrap-backend
    tp-comm-overlap-cfg tp-comm-overlap-rs-dgrad train-data-path train-iters train-samples train-sync-interval
    transformer-impl trust-remote-code use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler
    use-cpu-initialization use-dist-ckpt use-flash-attn use-fused-weighted-squared-relu use-legacy-models
    use-mcore-models use-nccl-ub use-persistent-ckpt-worker use-pytorch-profiler use-ring-exchange-p2p
    use-rope-scaling use-sharp use-te-activation-func use-torch-optimizer-for-cpu-offload valid-data-path
    vocab-extra-ids vocab-file wandb-entity wandb-exp-name wandb-project wandb-save-dir weight-decay
    weight-decay-incr-style wgrad-deferral-limit
    """.split()
)

MEGATRON = (
    MEGATRON_SWITCHES
    | MEGATRON_VALUES
    | MEGATRON_MANY
    | frozenset(MEGATRON_COSTLY)
    | frozenset(MEGATRON_GONE)
    | _MEGATRON_OTHERS
)
"""The arguments of Megatron-LM that a language model's launch line may have."""

TORCHRUN = frozenset(
    """
    local-addr local-ranks-filter log-dir logs-specs master-addr master-port max-restarts module monitor-interval
    nnodes no-python node-rank nproc-per-node rdzv-backend rdzv-conf rdzv-endpoint rdzv-id redirects role run-path
    standalone start-method tee
    """.split()
)
"""The options of ``torchrun``, which takes a dash and an underscore alike."""

DEEPSPEED_LAUNCHER = frozenset(
    """
    create-moe-param-group deepspeed deepspeed-activation-checkpointing deepspeed_config disable-moe-token-dropping
    ds-sequence-parallel-size enable-expert-tensor-parallelism exclude hostfile include launcher launcher_args
    layernorm-epsilon master_addr master_port module moe-expert-parallel-size moe-train-capacity-factor
    no-pipeline-parallel no-query-key-layer-scaling num-key-value-heads num_gpus num_nodes
    rotary-position-embeddings-theta topk zero-stage
    """.split()
)
"""The options of the ``deepspeed`` launcher, and what Megatron-DeepSpeed adds to Megatron's arguments."""

DEEPSPEED: dict[str, frozenset[str]] = {
    "": frozenset(
        """
        activation_checkpointing bf16 communication_data_type dump_state expert_parallel fp16 gradient_accumulation_steps
        gradient_clipping gradient_predivide_factor optimizer prescale_gradients scheduler sequence_parallel_size
        sparse_gradients steps_per_print tensor_parallel train_batch_size train_micro_batch_size_per_gpu
        wall_clock_breakdown zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization
        """.split()
    ),
    "activation_checkpointing": frozenset(
        """
        contiguous_memory_optimization cpu_checkpointing number_checkpoints partition_activations profile
        synchronize_checkpoint_boundary
        """.split()
    ),
    "bf16": frozenset("bf16_master_weights_and_grads bf16_optimizer_states enabled".split()),
    "expert_parallel": frozenset("autoep_size enabled expert_tensor_parallel_size preset_model".split()),
    "fp16": frozenset(
        """
        auto_cast consecutive_hysteresis enabled fp16_master_weights_and_grads hysteresis initial_scale_power loss_scale
        loss_scale_window min_loss_scale
        """.split()
    ),
    "optimizer": frozenset("params type".split()),
    "tensor_parallel": frozenset("autotp_size partition_config preset_model tp_overlap_comm".split()),
    "zero_optimization": frozenset(
        """
        allgather_bucket_size allgather_partitions compute_grad_norm contiguous_gradients elastic_checkpoint
        ignore_unused_parameters load_from_fp32_weights log_trace_cache_warnings offload_optimizer offload_param
        overlap_comm parameter_alignment reduce_bucket_size reduce_scatter round_robin_gradients stage
        stage3_gather_16bit_weights_on_model_save stage3_max_live_parameters stage3_max_reuse_distance
        stage3_module_granularity_threshold stage3_param_persistence_threshold stage3_prefetch_bucket_size
        sub_group_size zero_hpz_partition_size zero_quantized_gradients zero_quantized_weights
        """.split()
    ),
}
"""The keys of DeepSpeed's configuration, by section; "" has the top level's."""

TORCHTITAN: dict[str, frozenset[str]] = {
    "activation_checkpoint": frozenset(
        "mode per_op_sac_force_recompute_mm_shapes_by_fqns selective_ac_option".split()
    ),
    "float8": frozenset(
        """
        emulate enable_fsdp_float8_all_gather filter_fqns moe_fqns_prototype precompute_float8_dynamic_scale_for_fsdp
        recipe_name
        """.split()
    ),
    "model": frozenset("converters flavor name print_after_conversion tokenizer_path".split()),
    "optimizer": frozenset(
        "beta1 beta2 early_step_in_backward eps implementation lr name weight_decay".split()
    ),
    "parallelism": frozenset(
        """
        context_parallel_degree context_parallel_rotate_method data_parallel_replicate_degree
        data_parallel_shard_degree disable_loss_parallel enable_async_tensor_parallel enable_compiled_autograd
        expert_parallel_degree fsdp_reshard_after_forward module_fqns_per_model_part pipeline_parallel_degree
        pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers
        pipeline_parallel_layers_per_stage pipeline_parallel_microbatch_size pipeline_parallel_schedule
        pipeline_parallel_schedule_csv pipeline_parallel_split_points tensor_parallel_degree
        """.split()
    ),
    "training": frozenset(
        """
        compile dataset dataset_path deterministic enable_cpu_offload gc_debug gc_freq global_batch_size
        local_batch_size max_norm mixed_precision_param mixed_precision_reduce seed seq_len steps
        """.split()
    ),
}
"""The keys of torchtitan's job configuration that have to do with a plan, by section."""
