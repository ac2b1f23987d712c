"""A ``config.json`` as a set of fields, each read with its kind, so that every mistake names file, line and field."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from dse.errors import Diagnostic, InputError, Location, nearest
from dse.problem.files import read_file

__all__ = ["MISSING", "SIZE_LIMIT", "ConfigFile", "open_config"]

SIZE_LIMIT = 1_000_000
"""Bytes of a file; published ones have a few thousand."""

MISSING: Any = object()
"""The default of a field that must be given."""

_MODALITIES = re.compile(
    r"(vision|audio|image|video|speech|visual|tower|projector|mm_|encoder_layers|decoder_layers|patch_size|num_mel_bins)"
)

# Fields that change neither shapes nor the work of a layer.
_INERT = frozenset(
    "architectures auto_map dtype torch_dtype transformers_version use_cache initializer_range init_std"
    " initializer_cutoff_factor rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps model_type name_or_path"
    " quantization_config compression_config cache_implementation attn_implementation vocab_file tokenizer_class"
    " model_max_length pretraining_tp return_dict output_hidden_states output_attentions torchscript"
    " use_bfloat16 tf_legacy_loss is_decoder id2label label2id num_labels problem_type finetuning_task"
    " task_specific_params prefix tie_encoder_decoder chunk_size_feed_forward remove_invalid_values"
    " max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature"
    " top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size"
    " num_return_sequences output_scores return_dict_in_generate exponential_decay_length_penalty"
    " rope_theta rope_scaling rope_parameters rope_interleave rope_interleaved rope_local_base_freq rotary_pct"
    " rotary_emb_base rotary partial_rotary_factor original_max_position_embeddings initial_context_length"
    " attn_logit_softcapping final_logit_softcapping query_pre_attn_scalar scale_attn_weights"
    " scale_attn_by_inverse_layer_idx reorder_and_upcast_attn attention_softmax_in_fp32 swiglu_limit"
    " use_parallel_residual apply_residual_connection_post_layernorm slow_but_exact masked_softmax_fusion"
    " bias_dropout_fusion skip_bias_add skip_bias_add_qkv offset_alibi unk_token_id"
    " router_aux_loss_coef router_jitter_noise output_router_logits norm_topk_prob routed_scaling_factor"
    " aux_loss_alpha seq_aux scoring_func ep_size num_nextn_predict_layers num_mtp_layers"
    " summary_type summary_use_proj summary_activation summary_proj_to_labels summary_first_dropout"
    " classifier_dropout gradient_checkpointing activation_dropout layerdrop n_ctx use_flash_attn"
    " unsloth_fixed unsloth_version hidden_states_dtype".split()
)


class ConfigFile:
    """The fields of one file. Reading a field marks it; :meth:`close` refuses those that nothing has read."""

    def __init__(self, path: Path, text: str, fields: dict[str, Any]) -> None:
        self.path = path
        self._text = text
        self._fields = fields
        self._read: set[str] = set()

    def fail(self, field: str, message: str) -> NoReturn:
        """Refuse the file because of one field.

        Raises:
            InputError: always, with the field's line.
        """
        match = re.search(rf'"{re.escape(field)}"\s*:', self._text)
        line = self._text.count("\n", 0, match.start()) + 1 if match else 0
        raise InputError(str(Diagnostic(Location(str(self.path), line), field, message)))

    def get(self, field: str, default: Any = MISSING) -> Any:
        """The plain value of a field; ``default`` if it is not there."""
        self._read.add(field)
        if field in self._fields:
            return self._fields[field]
        if default is MISSING:
            kind = self._fields.get("model_type")
            known = "" if kind is None else f", expected one for model_type {kind!r}"
            self.fail(field, f"found no such field{known}")
        return default

    def either(self, *fields: str) -> str:
        """The one of several spellings that the file uses; the first if it has none.

        Raises:
            InputError: it uses two of them and they disagree.
        """
        used = [field for field in fields if self._fields.get(field) is not None]
        for other in used[1:]:
            if self._fields[other] != self._fields[used[0]]:
                self.fail(
                    other,
                    f"found {self._fields[other]!r}, expected {self._fields[used[0]]!r} as in {used[0]}",
                )
        self._read.update(used)
        return used[0] if used else fields[0]

    def count(self, field: str, default: Any = MISSING, *, least: int = 1, most: int = 10_000_000) -> int:
        """A whole number between ``least`` and ``most``; ``null`` counts as not there."""
        value = self.get(field, default)
        if value is None and default is not MISSING:
            value = default
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(field, f"found {_shown(value)}, expected a whole number")
        if not least <= value <= most:
            self.fail(field, f"found {_shown(value)}, expected {least:,} to {most:,}")
        return value

    def optional(self, field: str, *, least: int = 1) -> int | None:
        """A whole number, or None for a field that is ``null`` or not there."""
        return None if self.get(field, None) is None else self.count(field, least=least)

    def flag(self, field: str, default: bool) -> bool:
        """``true`` or ``false``; ``null`` counts as not there."""
        value = self.get(field, None)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.fail(field, f"found {_shown(value)}, expected true or false")
        return value

    def share(self, field: str, default: float) -> float:
        """A number from 0 to 1, such as a dropout rate."""
        value = self.get(field, None)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            self.fail(field, f"found {_shown(value)}, expected a number from 0 to 1")
        return float(value)

    def word(self, field: str, known: Sequence[str], default: Any = MISSING) -> str:
        """One of several texts."""
        value = self.get(field, None if default is MISSING else default)
        if value is None and default is MISSING:
            self.fail(field, f"found no such field, expected one of {', '.join(known)}")
        if not isinstance(value, str) or value not in known:
            hint = nearest(value, known) if isinstance(value, str) else ""
            self.fail(field, f"found {_shown(value)}, expected one of {', '.join(known)}{hint}")
        return value

    def words(self, field: str, known: Sequence[str], length: int) -> list[str] | None:
        """A list of ``length`` texts out of several, or None for a field that is ``null`` or not there."""
        value = self.get(field, None)
        if value is None:
            return None
        if not isinstance(value, list):
            self.fail(field, f"found {_shown(value)}, expected a list of {length} layer types")
        for item in value:
            if item not in known:
                hint = nearest(item, known) if isinstance(item, str) else ""
                self.fail(field, f"found {_shown(item)}, expected only {', '.join(known)}{hint}")
        if len(value) != length:
            self.fail(field, f"found {len(value)} items, expected one for each of {length} layers")
        return value

    def must_be(self, field: str, value: Any, because: str) -> None:
        """Refuse any other value of a field; nothing or ``null`` passes."""
        found = self.get(field, None)
        if found is not None and (found != value or isinstance(found, bool) != isinstance(value, bool)):
            self.fail(field, f"found {_shown(found)}, expected {json.dumps(value)}: {because}")

    def refuse_other_kinds(self) -> None:
        """Refuse what is no decoder of text."""
        for field, value in self._fields.items():
            if value not in (None, False, [], {}) and _MODALITIES.search(field):
                self.fail(field, "found another modality or an encoder, expected a text-only decoder")
        if isinstance(self._fields.get("text_config"), dict):
            self.fail("text_config", "found a nested configuration, expected a text-only decoder")
        self.must_be("is_encoder_decoder", False, "only decoders are known")
        self.must_be("add_cross_attention", False, "only decoders without cross-attention are known")
        classes = self.get("architectures", None)
        for name in classes if isinstance(classes, list) else []:
            if not str(name).endswith(("ForCausalLM", "LMHeadModel", "Model")):
                self.fail(
                    "architectures", f"found {_shown(name)}, expected a language model (...ForCausalLM)"
                )

    def close(self) -> None:
        """Refuse fields that were not read and may change the architecture."""
        known = sorted(self._read | _INERT)
        for field, value in self._fields.items():
            inert = (
                field in self._read
                or field in _INERT
                or field.startswith(("_", "bos_", "eos_", "pad_", "sep_", "decoder_start_", "forced_"))
                or value in (None, False, 0, "", [], {})
            )
            if not inert:
                kind = self._fields.get("model_type")
                hint = nearest(field, known)
                self.fail(
                    field,
                    f"found a field that is not known for model_type {kind!r} and may change the architecture"
                    f"{hint if 'did you mean' in hint else '; if it does not, remove it'}",
                )


def open_config(path: Path) -> ConfigFile:
    """The fields of a ``config.json``.

    Raises:
        InputError: the file cannot be read, is too large, or is no JSON object.
    """
    where = str(path)
    text = read_file(path, SIZE_LIMIT, "a Hugging Face config.json")
    try:
        fields = json.loads(text, object_pairs_hook=_once, parse_constant=_finite)
    except json.JSONDecodeError as error:
        place = Location(where, error.lineno, error.colno)
        raise InputError(f"{place}: found broken JSON ({error.msg}), expected a config.json") from None
    except (ValueError, RecursionError) as error:
        reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{where}: found unusable JSON ({reason[:200]}), expected a config.json") from None
    if not isinstance(fields, dict):
        raise InputError(f"{where}: found {_shown(fields)}, expected a JSON object")
    return ConfigFile(path, text, fields)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        again = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{again!r} is given more than once")
    return found


def _finite(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _shown(value: object) -> str:
    """A value as JSON, cut short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
