"""Neural systems, each with a tiny random model that its library makes here."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skillsight_core.evaluation import Benchmark, evaluate
from skillsight_core.evaluation._bge_m3 import BgeM3
from tests.fakes import HashEncoder

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
sentence_transformers = pytest.importorskip("sentence_transformers")

DOCUMENTS = {
    "merge": "merge pdf files into one",
    "review": "review a pull request",
    "deploy": "deploy the service to the cluster",
    "chart": "draw a chart of sales",
    "forecast": "forecast sales of the next week",
    "split": "split one pdf into pages",
}
QUERIES = {"q1": "merge two pdf files", "q2": "draw sales"}

WORDS = sorted({word for text in [*DOCUMENTS.values(), *QUERIES.values()] for word in text.split()})
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


@pytest.fixture
def tiny() -> Benchmark:
    gold = {"q1": ("merge",), "q2": ("chart",)}
    return Benchmark(
        name="tiny",
        ids=tuple(DOCUMENTS),
        texts=tuple(DOCUMENTS.values()),
        sizes=(len(DOCUMENTS),),
        queries=QUERIES,
        gold=gold,
        relevance={query: dict.fromkeys(ids, 1) for query, ids in gold.items()},
    )


@pytest.fixture
def tiny_bert(tmp_path: Path) -> Callable[[str], str]:
    """Save a random BERT with the given head and whole words as tokens; returns its folder."""

    def make(head: str, **config: int) -> str:
        torch.manual_seed(0)
        folder = tmp_path / head
        folder.mkdir()
        vocabulary = folder / "vocab.txt"
        vocabulary.write_text("\n".join([*SPECIAL, "query", ":", "yes", "no", *WORDS]))
        tokenizer = transformers.BertTokenizerFast(
            str(vocabulary), model_max_length=32, eos_token="[SEP]"
        )
        tokenizer.save_pretrained(folder)
        settings = transformers.BertConfig(vocab_size=len(tokenizer), **SIZES, **config)
        getattr(transformers, head)(settings).eval().save_pretrained(folder)
        return str(folder)

    return make


def _scores(tiny: Benchmark, method: str, **options: object) -> dict[str, dict[str, float]]:
    """Scores by query and document that a method gives."""
    found = evaluate(tiny, [method], encoder=HashEncoder(), **options)  # type: ignore[arg-type]
    return {query: dict(ranking) for query, ranking in found[method].run.items()}


def test_embed_ranks_by_the_products_of_the_models_own_query_and_document_vectors(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    folder = tiny_bert("BertModel")
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    model.prompts = {"query": "query: ", "document": ""}
    model.save_pretrained(folder)
    scores = _scores(tiny, f"embed:{folder}")
    queries = model.encode(
        ["query: " + text for text in QUERIES.values()], normalize_embeddings=True
    )
    documents = model.encode(list(DOCUMENTS.values()), normalize_embeddings=True)
    for query, vector in zip(QUERIES, queries, strict=True):
        expected = dict(zip(DOCUMENTS, documents @ vector, strict=True))
        assert scores[query] == pytest.approx(expected, abs=1e-5)


def test_embed_takes_the_given_query_prompt_in_place_of_the_models_own(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    folder = tiny_bert("BertModel")
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    plain = _scores(tiny, f"embed:{folder}", query_prompt="")
    prompted = _scores(tiny, f"embed:{folder}", query_prompt="review : ")
    (vector,) = model.encode(["review : " + QUERIES["q1"]], normalize_embeddings=True)
    (document,) = model.encode([DOCUMENTS["chart"]], normalize_embeddings=True)
    assert prompted["q1"]["chart"] == pytest.approx(float(document @ vector), abs=1e-5)
    assert prompted["q1"]["chart"] != pytest.approx(plain["q1"]["chart"], abs=1e-5)


def test_rerank_gives_the_scores_of_the_cross_encoder(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    folder = tiny_bert("BertForSequenceClassification", num_labels=1)
    scores = _scores(tiny, f"rerank:{folder}")
    reader = sentence_transformers.CrossEncoder(folder, device="cpu")
    for query, text in QUERIES.items():
        read = reader.predict([(text, document) for document in DOCUMENTS.values()])
        assert scores[query] == pytest.approx(dict(zip(DOCUMENTS, read, strict=True)), abs=1e-5)


def test_rerank_reads_no_more_than_the_best_dense_documents(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    method = f"rerank:{tiny_bert('BertForSequenceClassification', num_labels=1)}"
    found = evaluate(tiny, ["dense", method], encoder=HashEncoder(), depth=2)
    for query in QUERIES:
        dense = [id_ for id_, _ in found["dense"].run[query]]
        assert sorted(id_ for id_, _ in found[method].run[query]) == sorted(dense)
        assert len(dense) == 2


def test_rerank_runs_a_decoder_that_answers_yes_or_no(tiny: Benchmark, tmp_path: Path) -> None:
    """The kind of model Qwen3-Reranker is: the score is logit(yes) - logit(no)."""
    torch.manual_seed(0)
    words = ["[PAD]", "[UNK]", "yes", "no", *WORDS]
    tokenizers = pytest.importorskip("tokenizers")
    core = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", model_max_length=64
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    tokenizer.save_pretrained(tmp_path)
    config = transformers.Qwen3Config(
        vocab_size=len(words), num_key_value_heads=1, head_dim=8, **SIZES
    )
    transformers.Qwen3ForCausalLM(config).eval().save_pretrained(tmp_path)
    scores = _scores(tiny, f"rerank:{tmp_path}")
    reader = sentence_transformers.CrossEncoder(str(tmp_path), device="cpu")
    read = reader.predict([(QUERIES["q2"], text) for text in DOCUMENTS.values()])
    assert len(set(read.tolist())) == len(DOCUMENTS)
    assert scores["q2"] == pytest.approx(dict(zip(DOCUMENTS, read, strict=True)), abs=1e-4)


def test_splade_gives_the_products_of_sparse_vectors(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    folder = tiny_bert("BertForMaskedLM")
    scores = _scores(tiny, f"splade:{folder}")
    encoder = sentence_transformers.SparseEncoder(folder, device="cpu")
    documents = encoder.encode_document(list(DOCUMENTS.values())).to_dense()
    queries = encoder.encode_query(list(QUERIES.values())).to_dense()
    for query, products in zip(QUERIES, (queries @ documents.T).tolist(), strict=True):
        expected = dict(zip(DOCUMENTS, products, strict=True))
        assert scores[query] == pytest.approx(expected, abs=1e-4)


def test_colbert_sums_each_query_tokens_best_match(
    tiny: Benchmark, tiny_bert: Callable[..., str], tmp_path: Path
) -> None:
    if not hasattr(sentence_transformers, "MultiVectorEncoder"):
        pytest.importorskip("pylate")
    folder = str(tmp_path / "colbert")
    if hasattr(sentence_transformers, "MultiVectorEncoder"):
        encoder = sentence_transformers.MultiVectorEncoder(tiny_bert("BertModel"), device="cpu")
        encoder.save_pretrained(folder)
        documents = encoder.encode_document(list(DOCUMENTS.values()))
        queries = encoder.encode_query(list(QUERIES.values()))
    else:
        from pylate import models

        encoder = models.ColBERT(tiny_bert("BertModel"), device="cpu")
        encoder.save_pretrained(folder)
        documents = encoder.encode(list(DOCUMENTS.values()), is_query=False)
        queries = encoder.encode(list(QUERIES.values()), is_query=True)
    scores = _scores(tiny, f"colbert:{folder}")
    for query, tokens in zip(QUERIES, queries, strict=True):
        expected = {
            id_: sum(
                max(float(np.dot(q, d)) for d in np.asarray(other)) for q in np.asarray(tokens)
            )
            for id_, other in zip(DOCUMENTS, documents, strict=True)
        }
        assert scores[query] == pytest.approx(expected, abs=1e-4)


def _tiny_m3(folder: str) -> None:
    """Make a BGE-M3 of a BERT: the first token's vector, and a head of one weight for each."""
    modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    transformer = modules.Transformer(folder)
    pooling = modules.Pooling(16, pooling_mode="cls")
    model = sentence_transformers.SentenceTransformer(
        modules=[transformer, pooling, modules.Normalize()], device="cpu"
    )
    model.save_pretrained(folder)
    torch.manual_seed(1)
    for name, width in (("colbert_linear", 16), ("sparse_linear", 1)):
        head = {"weight": torch.randn(width, 16), "bias": torch.full((width,), 0.5)}
        torch.save(head, Path(folder, f"{name}.pt"))


def test_bge_m3_adds_three_tenths_of_the_sparse_score_to_the_dense_one(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    folder = tiny_bert("BertModel")
    _tiny_m3(folder)
    scores = _scores(tiny, f"bge-m3:{folder}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    bert = transformers.AutoModel.from_pretrained(folder).eval()
    head = torch.load(Path(folder, "sparse_linear.pt"), weights_only=True)

    def read(text: str) -> tuple[torch.Tensor, dict[int, float]]:
        encoded = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            (states,) = bert(**encoded).last_hidden_state
        weights: dict[int, float] = {}
        for token, state in zip(encoded["input_ids"][0].tolist(), states, strict=True):
            gain = max(0.0, float(head["weight"][0] @ state + head["bias"][0]))
            if token not in tokenizer.all_special_ids:
                weights[token] = max(gain, weights.get(token, 0.0))
        return torch.nn.functional.normalize(states[0], dim=0), weights

    sparse_scores = []
    for query, text in QUERIES.items():
        vector, words = read(text)
        for id_, document in DOCUMENTS.items():
            other, others = read(document)
            lexical = sum(weight * others.get(token, 0.0) for token, weight in words.items())
            sparse_scores.append(lexical)
            expected = float(vector @ other) + 0.3 * lexical
            assert scores[query][id_] == pytest.approx(expected, abs=1e-4)
    assert min(sparse_scores) == 0.0 < max(sparse_scores)


def test_bge_m3_reads_as_the_library_of_its_authors_does(tiny_bert: Callable[..., str]) -> None:
    flag = pytest.importorskip("FlagEmbedding", exc_type=ImportError)
    folder = tiny_bert("BertModel")
    _tiny_m3(folder)
    theirs = flag.BGEM3FlagModel(folder, devices="cpu", use_fp16=False).encode(
        list(DOCUMENTS.values()), return_sparse=True
    )
    ours = BgeM3(folder).encode(list(DOCUMENTS.values()))
    assert ours.dense == pytest.approx(theirs["dense_vecs"], abs=1e-5)
    for row, weights in enumerate(theirs["lexical_weights"]):
        (columns,) = ours.sparse[[row]].toarray()[0].nonzero()
        assert {str(c) for c in columns} == set(weights)
        for column in columns:
            assert ours.sparse[row, column] == pytest.approx(weights[str(column)], abs=1e-5)


def test_bge_m3_without_its_sparse_head_is_refused(
    tiny: Benchmark, tiny_bert: Callable[..., str]
) -> None:
    with pytest.raises(OSError, match="of the method 'bge-m3' could not be loaded"):
        evaluate(tiny, [f"bge-m3:{tiny_bert('BertModel')}"], encoder=HashEncoder())


@pytest.mark.parametrize("kind", ["embed", "rerank", "splade", "colbert", "bge-m3"])
def test_an_absent_model_is_one_clear_sentence(kind: str, tiny: Benchmark, tmp_path: Path) -> None:
    if kind == "colbert" and not hasattr(sentence_transformers, "MultiVectorEncoder"):
        pytest.importorskip("pylate")
    absent = tmp_path / "absent"
    with pytest.raises(OSError, match=rf"'.*absent' of the method '{kind}' could not be loaded"):
        evaluate(tiny, [f"{kind}:{absent}"], encoder=HashEncoder())
